import { CaissonError } from "@caisson/contract";
import type { Exited, ProcessState } from "@caisson/contract/link";
import type { Connection } from "../connection.ts";
import { windowBytes } from "../frame/frame.ts";
import type { OutputSink } from "../guest.ts";
import { position } from "../messages.ts";
import { LinkViolation } from "../violation.ts";
import { Intake } from "./intake.ts";
import { Outbound } from "./outbound.ts";
import { PieceQueue } from "./piece-queue.ts";
import type { StreamReceiver } from "./receiver.ts";

/** Pieces that the sink may have at once. Those beyond are kept and joined here, so that it gets fewer and larger ones. */
const maxWrites = 256;
/** One for all processes: making an error takes longer than telling an exit. */
const hasExited = new CaissonError("PROCESS_ENDED", "the process has exited");

/**
 * A process's stream. It outlives connections: its output goes on where the sink stands, its input
 * where the guest stands.
 */
export class ProcessStream implements StreamReceiver {
  readonly stream: number;
  /** The guest has confirmed that the process exists. */
  confirmed: boolean;
  readonly input: Outbound;
  readonly #sink: OutputSink;
  readonly #onSinkFailed: (error: unknown) => void;
  readonly #intake: Intake;
  readonly #queue = new PieceQueue({ join: true });
  #connection: Connection | undefined;
  #writes = 0;
  /** The sink has failed: what comes is dropped until a new connection sends it again. */
  #stalled = false;
  #exit: Exited | undefined;
  #exitTold = false;
  #settled: (() => void)[] = [];
  /** Started by an earlier daemon; where its input stands is learnt from the guest. */
  #adopted: boolean;

  constructor(
    stream: number,
    sink: OutputSink,
    options: { adopted: boolean; onSinkFailed: (error: unknown) => void },
  ) {
    this.stream = stream;
    this.#sink = sink;
    this.#adopted = options.adopted;
    this.confirmed = options.adopted;
    this.#onSinkFailed = options.onSinkFailed;
    this.#intake = new Intake(stream, sink.position);
    this.input = new Outbound(stream, windowBytes);
  }

  /** How far the output is stored. */
  get stored(): number {
    return this.#sink.position;
  }

  get room(): number {
    return this.#exit ? position(this.#exit.position) - this.#intake.received : this.#intake.room;
  }

  /** The stream is opened on its first connection. */
  bind(connection: Connection): void {
    this.#connection = connection;
    connection.open(this.stream, this);
  }

  /** The stream goes on, on a connection whose hello named `from` as what is stored. */
  rebind(connection: Connection, from: number, state: ProcessState, window: number): void {
    if (position(state.firstPosition) > from) throw new LinkViolation("output that was not stored is gone");
    this.confirmed = true;
    this.#stalled = false;
    this.#intake.restart(from);
    const taken = position(state.stdinPosition);
    if (this.#adopted) this.input.begin(taken);
    this.#adopted = false;
    this.input.rewind(taken, window);
    this.bind(connection);
    if (state.exited) this.exited(state.exited);
    connection.writer.offer(this.input);
  }

  data(tag: number, piece: Uint8Array): void {
    if (tag !== 1 && tag !== 2) throw new LinkViolation("output without a tag");
    this.#intake.receive(piece.length);
    if (this.#exit && this.#intake.received > position(this.#exit.position)) {
      throw new LinkViolation("output after the end of a process");
    }
    if (piece.length === 0 || this.#stalled) return;
    if (this.#writes < maxWrites && this.#queue.empty) this.#store(tag, piece);
    else this.#queue.push(tag, piece);
  }

  ack(position: number): void {
    if (this.input.failure) return;
    this.input.ack(position);
    this.#connection?.writer.offer(this.input);
  }

  end(): void {
    // The exit says where the output ends.
  }

  /** The guest takes no more input; the output goes on. */
  reset(failure: CaissonError | undefined): void {
    this.input.fail(failure ?? new CaissonError("STDIN_CLOSED", "the process takes no more input"));
  }

  cut(): void {
    this.#connection = undefined;
  }

  exited(exit: Exited): void {
    const end = position(exit.position);
    const { received, acked } = this.#intake;
    if (this.#exit && position(this.#exit.position) !== end)
      throw new LinkViolation("two exits of one process");
    if (end < received || end > acked + windowBytes) throw new LinkViolation("an exit at a wrong position");
    this.#exit ??= exit;
    this.input.fail(hasExited);
    this.#tellExit();
  }

  /** Writes input; resolves when the guest has taken it. */
  writeInput(bytes: Uint8Array): Promise<void> {
    if (this.input.ended) {
      return Promise.reject(new CaissonError("STDIN_CLOSED", "the process's input was closed"));
    }
    const written = this.input.write(bytes);
    this.#connection?.writer.offer(this.input);
    return written;
  }

  endInput(): void {
    this.input.end();
    this.#connection?.writer.offer(this.input);
  }

  /** Nothing more is wanted of it. */
  close(error: CaissonError): void {
    this.input.fail(error);
    this.#connection?.writer.withdraw(this.input);
    this.#connection?.writer.dropAck(this.#intake);
    this.#connection?.drop(this.stream);
    this.#connection = undefined;
  }

  /** Resolves when everything that came is stored, or the sink has failed. */
  settle(): Promise<void> {
    if (this.#writes === 0) return Promise.resolve();
    return new Promise((resolve) => this.#settled.push(resolve));
  }

  #store(tag: 1 | 2, piece: Uint8Array): void {
    this.#writes += 1;
    let written: Promise<void>;
    try {
      written = this.#sink.write(tag, piece);
    } catch (error) {
      written = Promise.reject(error);
    }
    written.then(this.#onStored, this.#onFailed);
  }

  #onStored = (): void => {
    this.#writes -= 1;
    while (this.#writes < maxWrites) {
      const next = this.#queue.shift();
      if (!next) break;
      this.#store(next.tag as 1 | 2, next.bytes);
    }
    this.#intake.taken = Math.min(this.#sink.position, this.#intake.received);
    if (this.#writes === 0) this.#onIdle();
    if (!this.#exitTold) this.#connection?.writer.acknowledge(this.#intake);
  };

  #onFailed = (error: unknown): void => {
    this.#writes -= 1;
    this.#queue.clear();
    const first = !this.#stalled;
    this.#stalled = true;
    if (this.#writes === 0) this.#onIdle();
    if (first) this.#onSinkFailed(error);
  };

  #onIdle(): void {
    const waiting = this.#settled;
    this.#settled = [];
    for (const resolve of waiting) resolve();
    this.#tellExit();
  }

  #tellExit(): void {
    const complete = this.#exit && this.#intake.received === position(this.#exit.position);
    if (!complete || this.#exitTold || this.#stalled || this.#writes > 0) return;
    this.#exitTold = true;
    this.#sink.exited(this.#exit!);
  }
}
