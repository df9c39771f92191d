import { create } from "@bufbuild/protobuf";
import {
  ChunkSchema,
  type Enforcement,
  GapSchema,
  type Process,
  type ProcessEvent,
  ProcessEventSchema,
} from "@caisson/contract";
import type { AttachOptions } from "../engine.ts";
import { toExit } from "../messages.ts";
import type { ProcessLog } from "../process-log/index.ts";
import type { ProcessRecord } from "../records.ts";

/** A process as readers need it, of a living sandbox or an ended one. */
export interface Readable {
  readonly record: ProcessRecord;
  readonly log: ProcessLog;
  readonly enforcement: Enforcement | undefined;
  message(): Process;
}

/** Events of a process after a number: what is kept, then what comes. */
export async function* attach(process: Readable, options: AttachOptions): AsyncGenerator<ProcessEvent> {
  const { record, log } = process;
  const from = Number(options.from);
  if (from === 0) yield event(0, { case: "started", value: process.message() });
  const items = log.read(from, {
    follow: options.follow,
    hold: options.hold ?? false,
    signal: options.signal,
  });
  for await (const item of items) {
    if ("missing" in item) {
      const value = create(GapSchema, { missingBytes: BigInt(item.missing) });
      yield event(item.position, { case: "gap", value });
    } else {
      const value = create(ChunkSchema, { data: item.bytes });
      yield event(
        item.from + item.bytes.length,
        item.tag === 1 ? { case: "stdout", value } : { case: "stderr", value },
      );
    }
  }
  if (options.signal.aborted || !record.exit) return;
  const exit = toExit(record.exit, process.enforcement);
  exit.truncated ||= log.firstKept > 0;
  yield event(log.end, { case: "exit", value: exit });
}

function event(seq: number, value: ProcessEvent["event"]): ProcessEvent {
  return create(ProcessEventSchema, { seq: BigInt(seq), event: value });
}
