import { join } from "node:path";
import type { Exited } from "@caisson/contract/link";
import type { EngineContext } from "../context.ts";
import { type Piece, ProcessLog } from "../process-log/index.ts";
import { kinds, type ProcessRecord, processKey, type SandboxRecord } from "../records.ts";
import type { Proc } from "./proc.ts";

/** Small outputs as they are stored: pairs of tag and base64. */
type Inline = [tag: 1 | 2, base64: string][];

/** The log of a process that is about to start. */
export function logOf(context: EngineContext, proc: Proc, exited: (exit: Exited) => void): ProcessLog {
  return ProcessLog.fresh(options(context, proc.box.record, proc.record, exited));
}

/** The log of a process of an earlier daemon's, or of an ended sandbox. */
export function recoverLog(
  context: EngineContext,
  sandbox: SandboxRecord,
  record: ProcessRecord,
  exited: (exit: Exited) => void = () => {},
): ProcessLog {
  return ProcessLog.recover(options(context, sandbox, record, exited));
}

export function outputDir(context: EngineContext, sandbox: SandboxRecord, processId: string): string {
  return join(context.dirOf(sandbox.place), "output", processId);
}

function options(
  context: EngineContext,
  sandbox: SandboxRecord,
  record: ProcessRecord,
  exited: (exit: Exited) => void,
) {
  const key = processKey(record.sandboxId, record.id);
  return {
    dir: outputDir(context, sandbox, record.id),
    keepBytes: sandbox.limits.outputBytes || Number.MAX_SAFE_INTEGER,
    budget: context.outputBudget,
    keepInline: (pieces: Piece[]) => {
      const value: Inline = pieces.map(({ tag, bytes }) => [tag, Buffer.from(bytes).toString("base64")]);
      context.commit([], [{ put: kinds.output, key, value }]).catch(() => {});
      return context.store.flush();
    },
    loadInline: () => fromInline(context.store.get<Inline>(kinds.output, key) ?? []),
    onExit: exited,
    onTrouble: (error: unknown) => {
      if (error === undefined) context.troubles.delete("output");
      else context.troubles.set("output", "the output of commands cannot be written; they wait");
      if (error !== undefined) context.log("error", "output cannot be written", { error: String(error) });
    },
  };
}

function fromInline(inline: Inline): Piece[] {
  let from = 0;
  return inline.map(([tag, base64]) => {
    const piece = { tag, from, bytes: Buffer.from(base64, "base64") };
    from += piece.bytes.length;
    return piece;
  });
}
