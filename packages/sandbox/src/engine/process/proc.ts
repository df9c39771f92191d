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
  release: (() => void) | undefined;
  /** The event that tells of its start, until it is committed: before any other of its events. */
  #start: NewEvent | undefined;

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

  willAnnounce(start: NewEvent): void {
    this.#start = start;
  }

  /** The event of its start if nobody has committed it yet, then `events`. */
  announced(...events: NewEvent[]): NewEvent[] {
    const start = this.#start;
    this.#start = undefined;
    return start ? [start, ...events] : events;
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
