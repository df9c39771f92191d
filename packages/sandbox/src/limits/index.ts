export type { Cgroup, Cgroups } from "./cgroup/cgroup.ts";
export { type FoundCgroups, findCgroups } from "./cgroup/find.ts";
export { type DiskUse, DiskWatcher, freeOn } from "./disk-watcher.ts";
export { type Bounder, engineGroup, isGroup, outerLimits, planLimits, withoutCounting } from "./plan.ts";
export {
  type LimitValues,
  limitNames,
  mergeLimits,
  noLimits,
  requestedLimits,
  sameBounds,
  toLimits,
} from "./values.ts";
export { MemoryWatcher, treeOf, type Watched } from "./watcher.ts";
