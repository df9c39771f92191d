import { CaissonError, type Process } from "@caisson/contract";
import type { EngineContext } from "../context.ts";
import { toProcess } from "../messages.ts";
import { kinds, type ProcessRecord, processKey, type SandboxRecord } from "../records.ts";
import type { Readable } from "./attach.ts";
import { recoverLog } from "./output.ts";

/** A process of a living or an ended sandbox. */
export function findProcess(context: EngineContext, sandbox: SandboxRecord, processId: string): Readable {
  const proc = context.boxes.get(sandbox.id)?.processes.get(processId);
  if (proc) {
    return {
      record: proc.record,
      log: proc.log,
      get enforcement() {
        return proc.box.enforcement;
      },
      message: () => proc.message(),
    };
  }
  const record = context.store.get<ProcessRecord>(kinds.process, processKey(sandbox.id, processId));
  if (!record) throw new CaissonError("PROCESS_NOT_FOUND", "the sandbox has no such process");
  return ofEnded(context, sandbox, record);
}

/** In the order of their start. */
export function listProcesses(context: EngineContext, sandbox: SandboxRecord): Process[] {
  const box = context.boxes.get(sandbox.id);
  if (box) return [...box.processes.values()].map((proc) => proc.message());
  const enforcement = context.reports.find(sandbox.enforcement);
  return [...context.store.scan<ProcessRecord>(kinds.process, `${sandbox.id}/`)]
    .map(([, record]) => record)
    .sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)))
    .map((record) => toProcess(record, enforcement, record));
}

function ofEnded(context: EngineContext, sandbox: SandboxRecord, record: ProcessRecord): Readable {
  const log = recoverLog(context, sandbox, record);
  log.finish();
  const enforcement = context.reports.find(sandbox.enforcement);
  return { record, log, enforcement, message: () => toProcess(record, enforcement, record) };
}
