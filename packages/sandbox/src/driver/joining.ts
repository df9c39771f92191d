import type { Keeper } from "../keeper/index.ts";

/**
 * Moves a sandbox into its control groups while it starts: the kernel makes the first process that is moved wait until every
 * processor has passed a quiet moment. For a sandbox in which nothing of anybody else's runs until it may be used.
 */
export function joinMeanwhile(
  keeper: Keeper,
  sandboxId: string,
  cgroups: readonly string[],
): Promise<void> | undefined {
  if (cgroups.length === 0) return undefined;
  const bounded = keeper.join(sandboxId, [...cgroups]);
  // Whoever waits for it hears of it.
  bounded.catch(() => {});
  return bounded;
}
