import type { StateChange } from "@caisson/store";
import type { EngineContext } from "./context.ts";
import { kinds, type SandboxRecord } from "./records.ts";

/** Drops an ended sandbox's record and kept output; resolves with the bytes freed on disk. */
export async function forgetSandbox(
  context: EngineContext,
  record: SandboxRecord,
  actor: string,
): Promise<number> {
  // Output first: a record whose output is gone can still be forgotten, output without a record is only found by the janitor.
  const bytes = record.place ? await context.parts.trees.remove(context.dirOf(record.place)) : 0;
  await context.commit(
    [{ type: "sandbox.forgotten", actor, sandboxId: record.id }],
    [{ remove: kinds.ended, key: record.id }, ...processChanges(context, record.id)],
  );
  return bytes;
}

function processChanges(context: EngineContext, sandboxId: string): StateChange[] {
  return [kinds.process, kinds.output, kinds.stdin].flatMap((kind) =>
    [...context.store.scan(kind, `${sandboxId}/`)].map(([key]): StateChange => ({ remove: kind, key })),
  );
}
