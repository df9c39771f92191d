import type { Driver, Launched } from "../driver/driver.ts";
import { type Cgroup, type LimitValues, outerLimits, sameBounds } from "../limits/index.ts";
import { preparedLimits } from "../profiles/index.ts";
import type { EngineContext } from "./context.ts";

/** The control group that a sandbox was launched in, if there is one. */
export function groupOf(
  context: EngineContext,
  { id, launched }: { id: string; launched: Launched },
): Cgroup | undefined {
  return launched.cgroup ?? context.cgroups.cgroups?.find(id);
}

/** Sets what a sandbox's group is to hold; it was launched with the default profile's bounds. */
export async function bound(
  group: Cgroup | undefined,
  { driver, limits }: { driver: Driver; limits: LimitValues },
  launched: Launched,
): Promise<void> {
  const outside = outsideLimits(limits, launched);
  if (sameBounds(outside, preparedLimits)) return;
  await group?.configure(outerLimits(driver, outside));
}

/** What a kernel of its own bounds inside, its process outside must not be killed for. */
function outsideLimits(limits: LimitValues, { outerMemoryBytes }: Launched): LimitValues {
  if (outerMemoryBytes === undefined) return limits;
  const { memoryBytes, pids } = preparedLimits;
  return { ...limits, memoryBytes: Math.max(memoryBytes, outerMemoryBytes), pids };
}
