import type { EngineContext } from "./context.ts";
import type { EngineOwners } from "./engine.ts";
import { sandboxRecord } from "./find.ts";
import { findSnapshot } from "./snapshots/record.ts";

/** Whoever asked for a sandbox is its owner, and that of what is made from it. */
export function engineOwners(context: EngineContext): EngineOwners {
  return {
    ofSandbox: (sandboxId) => known(() => sandboxRecord(context, sandboxId).actor),
    ofSnapshot: (name) => known(() => findSnapshot(context, name).sandbox.actor),
  };
}

function known(find: () => string): string | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}
