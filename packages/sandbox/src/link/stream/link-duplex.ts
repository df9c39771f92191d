import { Duplex } from "node:stream";
import { CaissonError } from "@caisson/contract";
import { borrow } from "@caisson/contract/lent";
import type { Connection } from "../connection.ts";
import { connectionWindowBytes, windowBytes } from "../frame/frame.ts";
import type { DataSource } from "../frame/writer.ts";
import { LinkViolation } from "../violation.ts";
import { Intake } from "./intake.ts";
import { PieceQueue } from "./piece-queue.ts";
import type { StreamReceiver } from "./receiver.ts";
import { Sending } from "./sending.ts";

/** What many streams may hold together. */
export interface Budget {
  /** False when it is used up; nothing was taken then. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

/**
 * A TCP connection inside the sandbox, as a stream of Node: each direction ends by itself, neither side sends
 * more than the other takes, and destroying it resets the connection.
 */
export class LinkDuplex extends Duplex {
  readonly #connection: Connection;
  readonly #budget: Budget;
  readonly #intake: Intake;
  readonly #sending = new Sending(windowBytes);
  readonly #source: DataSource;
  readonly #queue = new PieceQueue({ join: true });
  /** The reader wants more than there was. */
  #wanting = false;
  /** Bytes that the reader has in its hands or in its buffer. */
  #lent = 0;
  #guestDone = false;
  #endSent = false;
  #onEndSent: (() => void) | undefined;

  constructor(connection: Connection, stream: number, budget: Budget) {
    super({ allowHalfOpen: true, readableHighWaterMark: 64 * 1024, writableHighWaterMark: 64 * 1024 });
    this.#connection = connection;
    this.#budget = budget;
    this.#intake = new Intake(stream, 0, connectionWindowBytes);
    this.#source = {
      stream,
      take: (max) => this.#sending.take(max),
      written: () => this.#sending.written(),
      takeEnd: () => this.#takeEnd(),
    };
    // Whoever forgets to listen must not end the daemon by it.
    this.on("error", () => {});
    connection.open(stream, this.#receiver());
  }

  #receiver(): StreamReceiver {
    const room = () => (this.#guestDone ? 0 : this.#intake.room);
    return {
      get room() {
        return room();
      },
      data: (tag, piece) => this.#data(tag, piece),
      ack: (position) => {
        this.#sending.ack(position);
        this.#connection.writer.offer(this.#source);
      },
      end: () => {
        if (this.#guestDone) throw new LinkViolation("two ENDs of one stream");
        this.#guestDone = true;
        this.#connection.writer.dropAck(this.#intake);
        this.#dropWhenDone();
        if (this.#wanting) this.push(null);
      },
      reset: (failure) => {
        this.#guestDone = true;
        this.#connection.drop(this.#intake.stream);
        this.destroy(failure ?? new CaissonError("UNAVAILABLE", "the connection was reset in the sandbox"));
      },
      cut: (error) => this.destroy(error),
    };
  }

  #data(tag: number, piece: Uint8Array): void {
    if (tag !== 0) throw new LinkViolation("an unknown tag");
    if (this.#guestDone) throw new LinkViolation("DATA after END");
    this.#intake.receive(piece.length);
    if (piece.length === 0) return;
    if (!this.#budget.take(piece.length)) {
      this.destroy(new CaissonError("UNAVAILABLE", "too much waits on the connections of the sandbox"));
    } else if (this.#wanting) {
      this.#wanting = false;
      this.#lend(borrow(piece));
    } else {
      this.#queue.push(0, piece);
    }
  }

  override _read(): void {
    // The reader has come back for more: only now is it done with what it was given.
    if (this.#lent > 0) {
      this.#intake.taken += this.#lent;
      this.#budget.give(this.#lent);
      this.#lent = 0;
      if (!this.#guestDone) this.#connection.writer.acknowledge(this.#intake);
    }
    const piece = this.#queue.shift()?.bytes;
    if (piece) this.#lend(piece);
    else if (this.#guestDone) this.push(null);
    else this.#wanting = true;
  }

  override _write(chunk: Uint8Array, _encoding: string, done: (error?: Error) => void): void {
    if (chunk.length === 0) {
      done();
      return;
    }
    this.#sending.give([chunk], done);
    this.#connection.writer.offer(this.#source);
  }

  override _writev(chunks: { chunk: Uint8Array }[], done: (error?: Error) => void): void {
    const pieces = chunks.map(({ chunk }) => chunk).filter(({ length }) => length > 0);
    if (pieces.length === 0) {
      done();
      return;
    }
    this.#sending.give(pieces, done);
    this.#connection.writer.offer(this.#source);
  }

  /** Finished when the end is on its way: the stream may be destroyed then. */
  override _final(done: (error?: Error) => void): void {
    this.#onEndSent = done;
    this.#sending.end();
    this.#connection.writer.offer(this.#source);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#connection.writer.withdraw(this.#source);
    this.#connection.writer.dropAck(this.#intake);
    this.#budget.give(this.#lent + this.#queue.bytes);
    this.#lent = 0;
    this.#wanting = false;
    this.#queue.clear();
    this.#sending.stop();
    // Does nothing when both sides have ended it, or it is gone already.
    this.#connection.reset(this.#intake.stream);
    done(error);
  }

  #lend(piece: Uint8Array): void {
    this.#lent += piece.length;
    this.push(piece);
  }

  #takeEnd(): boolean {
    if (!this.#sending.takeEnd()) return false;
    this.#endSent = true;
    this.#dropWhenDone();
    this.#onEndSent?.();
    return true;
  }

  #dropWhenDone(): void {
    if (this.#guestDone && this.#endSent) this.#connection.drop(this.#intake.stream);
  }
}
