import { CaissonError } from "@caisson/contract";
import type { Connection } from "../connection.ts";
import { LinkViolation } from "../violation.ts";
import { Intake } from "./intake.ts";
import { PieceQueue } from "./piece-queue.ts";
import type { StreamReceiver } from "./receiver.ts";

/**
 * What a guest sends on a file stream, for one reader at its own pace. With `records`, each item is
 * the whole payload of one DATA frame; otherwise pieces come as they are.
 */
export class Inbound implements StreamReceiver, AsyncIterable<Uint8Array> {
  readonly #connection: Connection;
  readonly #intake: Intake;
  readonly #records: boolean;
  readonly #queue: PieceQueue;
  #record: Uint8Array | undefined;
  #recordFill = 0;
  #over: { error?: unknown } | undefined;
  #guestDone = false;
  /** Bytes of the piece that the reader has in its hands. */
  #lent = 0;
  #wake: (() => void) | undefined;

  constructor(connection: Connection, stream: number, options: { records: boolean }) {
    this.#connection = connection;
    this.#intake = new Intake(stream);
    this.#records = options.records;
    this.#queue = new PieceQueue({ join: !options.records });
    connection.open(stream, this);
  }

  get room(): number {
    return this.#guestDone ? 0 : this.#intake.room;
  }

  data(tag: number, piece: Uint8Array, left: number): void {
    if (tag !== 0) throw new LinkViolation("an unknown tag");
    if (this.#guestDone) throw new LinkViolation("DATA after END");
    this.#intake.receive(piece.length);
    if (!this.#records) {
      if (piece.length > 0) this.#push(piece);
    } else if (this.#record) {
      this.#record.set(piece, this.#recordFill);
      this.#recordFill += piece.length;
      if (left === 0) this.#push(this.#record);
    } else if (left === 0) {
      if (piece.length > 0) this.#push(piece);
    } else {
      this.#record = new Uint8Array(piece.length + left);
      this.#record.set(piece);
      this.#recordFill = piece.length;
    }
  }

  ack(position: number): void {
    if (position !== 0) throw new LinkViolation("an ACK beyond what was sent");
  }

  end(): void {
    this.#guestDone = true;
    this.#finish({});
  }

  reset(failure: CaissonError | undefined): void {
    this.#guestDone = true;
    this.#finish({ error: failure ?? new CaissonError("UNAVAILABLE", "the guest gave the transfer up") });
  }

  cut(error: CaissonError): void {
    this.#finish({ error });
  }

  /** Ends it from our side. What the reader has not taken is dropped. */
  cancel(error: unknown): void {
    if (!this.#over) this.#connection.reset(this.#intake.stream);
    this.#queue.clear();
    this.#over = { error };
    this.#wake?.();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined, undefined> {
    return {
      next: () => this.#next(),
      return: async () => {
        this.cancel(undefined);
        return { done: true, value: undefined };
      },
    };
  }

  async #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    // The reader has come back for more: only now is it done with the last piece.
    if (this.#lent > 0) {
      this.#intake.taken += this.#lent;
      this.#lent = 0;
      if (!this.#over) this.#connection.writer.acknowledge(this.#intake);
    }
    for (;;) {
      const piece = this.#queue.shift()?.bytes;
      if (piece) {
        this.#lent = piece.length;
        return { done: false, value: piece };
      }
      if (this.#over) {
        const { error } = this.#over;
        this.#over = {};
        if (error !== undefined) throw error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #push(bytes: Uint8Array): void {
    this.#record = undefined;
    this.#queue.push(0, bytes);
    this.#wake?.();
  }

  #finish(over: { error?: unknown }): void {
    if (this.#over) return;
    this.#over = over;
    this.#connection.writer.dropAck(this.#intake);
    this.#connection.drop(this.#intake.stream);
    this.#wake?.();
  }
}
