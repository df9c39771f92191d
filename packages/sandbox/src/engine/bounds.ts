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
  if (sameBounds(limits, preparedLimits)) return;
  await group?.configure(outerLimits(driver, outsideLimits(limits, launched)));
}

/** What a kernel of its own bounds inside, its process outside must not be killed for. */
function outsideLimits(limits: LimitValues, launched: Launched): LimitValues {
  if (!launched.limitMemory) return limits;
  return { ...limits, memoryBytes: preparedLimits.memoryBytes, pids: preparedLimits.pids };
}
