import { CaissonError } from "@caisson/contract";
import type { Exited, GuestHello } from "@caisson/contract/link";
import type { Connection } from "./connection.ts";
import { windowBytes } from "./frame/frame.ts";
import type { OutputSink } from "./guest.ts";
import type { Survivors } from "./lifeline.ts";
import { Discard } from "./stream/discard.ts";
import { ProcessStream } from "./stream/process.ts";
import { LinkViolation } from "./violation.ts";

export interface ProcessEvents {
  /** Output could not be stored; the guest still has it. */
  sinkFailed(error: unknown): void;
  /** A process was claimed too late for the connection that was just opened. */
  claimedLate(): void;
}

/** The processes of one sandbox, as far as the daemon has not told the guest to forget them. */
export class Processes implements Survivors {
  readonly #byStream = new Map<number, ProcessStream>();
  /** Processes of the guest's that nobody has claimed. */
  readonly #unclaimed = new Set<number>();
  readonly #events: ProcessEvents;
  #nextStream = 1;
  #boundBefore = false;
  /** Bytes that may be on their way to the guest per stream. */
  window = windowBytes;

  constructor(events: ProcessEvents) {
    this.#events = events;
  }

  get nextStream(): number {
    return this.#nextStream;
  }

  takeStream(): number {
    this.#nextStream += 1;
    return this.#nextStream - 1;
  }

  get(stream: number): ProcessStream | undefined {
    return this.#byStream.get(stream);
  }

  /** A process that is about to be started. */
  add(stream: number, sink: OutputSink): ProcessStream {
    if (this.#byStream.has(stream) || stream >= this.#nextStream || stream < 1) {
      throw new CaissonError("INTERNAL", "a stream number that was not given out");
    }
    return this.#insert(stream, sink, false);
  }

  /** A process that an earlier daemon started. */
  adopt(stream: number, sink: OutputSink): void {
    if (this.#boundBefore && !this.#unclaimed.has(stream)) {
      throw new CaissonError(
        "PROCESS_NOT_FOUND",
        "the guest knows of no such process, or it is claimed already",
      );
    }
    this.#unclaimed.delete(stream);
    this.#insert(stream, sink, true);
  }

  remove(stream: number, error: CaissonError): void {
    this.#byStream.get(stream)?.close(error);
    this.#byStream.delete(stream);
    this.#unclaimed.delete(stream);
  }

  async settle(): Promise<{ stream: number; position: bigint }[]> {
    await Promise.all([...this.#byStream.values()].map((process) => process.settle()));
    return [...this.#byStream.values()].map(({ stream, stored }) => ({ stream, position: BigInt(stored) }));
  }

  bind(connection: Connection, hello: GuestHello, positions: { stream: number; position: bigint }[]): void {
    this.window = Math.min(hello.window, windowBytes);
    const stored = new Map(positions.map(({ stream, position }) => [stream, Number(position)]));
    const missing = new Set(this.#byStream.keys());
    for (const state of hello.processes) {
      const process = this.#byStream.get(state.stream);
      const from = stored.get(state.stream);
      missing.delete(state.stream);
      if (process && from !== undefined) process.rebind(connection, from, state, this.window);
      else this.#bindUnknown(connection, state.stream);
      if (process && from === undefined) this.#events.claimedLate();
    }
    for (const stream of missing) this.#missing(stream);
    const highest = hello.processes.reduce((max, { stream }) => Math.max(max, stream), hello.nextStream - 1);
    this.#nextStream = Math.max(this.#nextStream, highest + 1);
    this.#boundBefore = true;
  }

  exited(exited: Exited, connection: Connection): void {
    if (exited.stream >= this.#nextStream)
      throw new LinkViolation("an exit of a process that nobody started");
    const process = this.#byStream.get(exited.stream);
    if (process) process.exited(exited);
    // It was forgotten while it ran; now the guest can forget it too.
    else if (!this.#unclaimed.has(exited.stream)) {
      connection.tell({ case: "forget", value: { stream: exited.stream } });
    }
  }

  fail(error: CaissonError): void {
    for (const process of this.#byStream.values()) process.input.fail(error);
  }

  #insert(stream: number, sink: OutputSink, adopted: boolean): ProcessStream {
    const process = new ProcessStream(stream, sink, { adopted, onSinkFailed: this.#events.sinkFailed });
    this.#byStream.set(stream, process);
    return process;
  }

  /** On the first connection, one that an earlier daemon left; later, one whose Forget was cut off. */
  #bindUnknown(connection: Connection, stream: number): void {
    if (!this.#boundBefore) this.#unclaimed.add(stream);
    connection.open(stream, new Discard(stream));
    if (this.#unclaimed.has(stream) || this.#byStream.has(stream)) return;
    if (stream >= this.#nextStream) throw new LinkViolation("a process that nobody started");
    connection.drop(stream);
    connection.tell({ case: "forget", value: { stream } });
  }

  /** The guest does not know a process that we know. */
  #missing(stream: number): void {
    // Its Start is still to be sent.
    if (!this.#byStream.get(stream)!.confirmed) return;
    if (this.#boundBefore) throw new LinkViolation("a process was forgotten");
    this.#byStream.delete(stream);
  }
}
