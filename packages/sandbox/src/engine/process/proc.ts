import type { Process } from "@caisson/contract";
import type { NewEvent, StateChange } from "@caisson/store";
import type { Box } from "../box.ts";
import { toProcess } from "../messages.ts";
import type { ProcessLog } from "../process-log/index.ts";
import { type ExitRecord, kinds, type ProcessRecord, processKey } from "../records.ts";

/** A process that runs or has run in a living sandbox. */
export class Proc {
  readonly record: ProcessRecord;
  readonly box: Box;
  log!: ProcessLog;
  /** Resolves when it has exited. */
  readonly exited = Promise.withResolvers<void>();
  /** Input that the guest has taken or is being given. */
  stdinOffset = 0;
  /** Writes of input, one after the other. */
  stdinChain: Promise<unknown> = Promise.resolve();
  stdinOpen: boolean;
  /** How often memory had been exhausted in the sandbox when it started. */
  oomBefore = 0;
  /** It was ended because more was written to the project than may be. */
  overDisk = false;
  release: (() => void) | undefined;
  /** Records an exit that was told and is not recorded yet; whatever is recorded later calls it first. */
  settle: (() => void) | undefined;
  /** It could not be started, or not be recorded: nothing more is told of it. */
  dropped = false;

  constructor(box: Box, record: ProcessRecord) {
    this.box = box;
    this.record = record;
    this.stdinOpen = record.keepStdin;
  }

  get id(): string {
    return this.record.id;
  }

  get key(): string {
    return processKey(this.record.sandboxId, this.record.id);
  }

  /** The event of its start if it was not committed yet, then `events`. Whoever calls this commits them, and `put`. */
  announced(...events: NewEvent[]): NewEvent[] {
    if (this.record.announced) return events;
    this.record.announced = true;
    return [startedEvent(this.record), ...events];
  }

  /** Sets the exit, once. */
  finish(exit: ExitRecord): boolean {
    if (this.record.exit) return false;
    this.record.exit = exit;
    this.record.endedAt = Date.now();
    this.record.seq = this.log.end;
    this.record.firstKeptSeq = this.log.firstKept;
    this.stdinOpen = false;
    this.release?.();
    this.exited.resolve();
    return true;
  }

  put(): StateChange {
    return { put: kinds.process, key: this.key, value: this.record };
  }

  message(): Process {
    return toProcess(this.record, this.box.enforcement, {
      seq: this.log.end,
      firstKeptSeq: this.log.firstKept,
    });
  }
}

/** Of a command's arguments in the trail. */
const trailBytes = 2048;

function startedEvent(record: ProcessRecord): NewEvent {
  return {
    type: "process.started",
    actor: record.actor,
    sandboxId: record.sandboxId,
    processId: record.id,
    data: { argv: trail(record.argv), cwd: record.cwd },
  };
}

function trail(argv: readonly string[]): string[] {
  const words: string[] = [];
  let left = trailBytes;
  for (const word of argv) {
    if (left <= 0) return [...words, "…"];
    words.push(word.length > left ? `${word.slice(0, left)}…` : word);
    left -= word.length;
  }
  return words;
}
