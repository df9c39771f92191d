import { CaissonError } from "@caisson/contract";
import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import { isSandboxId } from "./ids.ts";
import { kinds, type SandboxRecord } from "./records.ts";

const sessionPrefix = "session:";

/** A living sandbox by its id or `session:NAME`; undefined if it has ended or never was. */
export function livingBox(context: EngineContext, sandboxId: string): Box | undefined {
  if (!sandboxId.startsWith(sessionPrefix)) return context.boxes.get(sandboxId);
  const name = sandboxId.slice(sessionPrefix.length);
  const box = context.sessions.get(name.toLowerCase());
  if (!box) throw new CaissonError("SESSION_NOT_FOUND", `there is no living session ${name}`);
  return box;
}

/** A sandbox to work in: living, and waited for if it is not ready yet. */
export async function readyBox(context: EngineContext, sandboxId: string): Promise<Box> {
  const box = livingBox(context, sandboxId);
  if (!box) throw endedOrUnknown(context, sandboxId);
  await box.ready.promise;
  return box;
}

/** The record of a sandbox, living or ended. */
export function sandboxRecord(context: EngineContext, sandboxId: string): SandboxRecord {
  const box = livingBox(context, sandboxId);
  if (box) return box.record;
  const record = endedRecord(context, sandboxId);
  if (record) return record;
  throw notFound();
}

export function endedRecord(context: EngineContext, sandboxId: string): SandboxRecord | undefined {
  return isSandboxId(sandboxId) ? context.store.get<SandboxRecord>(kinds.ended, sandboxId) : undefined;
}

export function endedOrUnknown(context: EngineContext, sandboxId: string): CaissonError {
  const ended = endedRecord(context, sandboxId);
  if (!ended) return notFound();
  return new CaissonError("SANDBOX_ENDED", `the sandbox has ended: ${ended.endReason}`);
}

function notFound(): CaissonError {
  return new CaissonError("SANDBOX_NOT_FOUND", "there is no such sandbox");
}
