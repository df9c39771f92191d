import type { CaissonError } from "@caisson/contract";
import type { DataSource } from "../frame/writer.ts";
import { LinkViolation } from "../violation.ts";

interface Segment {
  bytes: Uint8Array;
  /** The position of its first byte. */
  from: number;
  taken(): void;
  failed(error: CaissonError): void;
}

/** The daemon's half of a stream: holds what the guest has not acknowledged, so that it can be sent again. */
export class Outbound implements DataSource {
  readonly stream: number;
  #window: number;
  #segments: Segment[] = [];
  /** The segment that holds the next byte to send. */
  #next = 0;
  #end = 0;
  #sent = 0;
  #acked = 0;
  #ending = false;
  #endSent = false;
  #failure: CaissonError | undefined;
  #roomWaiters: (() => void)[] = [];

  constructor(stream: number, window: number) {
    this.stream = stream;
    this.#window = window;
  }

  /** Counts from where an earlier daemon left off, before anything was sent. */
  begin(position: number): void {
    for (const segment of this.#segments) segment.from += position - this.#acked;
    this.#end += position - this.#acked;
    this.#sent = position;
    this.#acked = position;
  }

  get ended(): boolean {
    return this.#ending;
  }

  get failure(): CaissonError | undefined {
    return this.#failure;
  }

  /** Resolves when the guest has taken the bytes, which must not be changed until then. */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    if (bytes.length === 0) return Promise.resolve();
    return new Promise((taken, failed) => {
      this.#segments.push({ bytes, from: this.#end, taken, failed });
      this.#end += bytes.length;
    });
  }

  end(): void {
    this.#ending = true;
  }

  /** Resolves when less than a window waits to be taken, or the stream has failed. */
  async room(): Promise<void> {
    while (!this.#failure && this.#end - this.#acked >= this.#window) {
      await new Promise<void>((resolve) => this.#roomWaiters.push(resolve));
    }
  }

  take(max: number): Uint8Array | undefined {
    const segment = this.#segments[this.#next];
    const room = Math.min(max, this.#window - (this.#sent - this.#acked));
    if (!segment || room <= 0) return undefined;
    const start = this.#sent - segment.from;
    const piece = segment.bytes.subarray(start, start + room);
    this.#sent += piece.length;
    if (this.#sent === segment.from + segment.bytes.length) this.#next += 1;
    return piece;
  }

  takeEnd(): boolean {
    if (!this.#ending || this.#endSent || this.#failure || this.#sent < this.#end) return false;
    this.#endSent = true;
    return true;
  }

  ack(position: number): void {
    if (!(position >= this.#acked && position <= this.#sent)) {
      throw new LinkViolation("an ACK beyond what was sent");
    }
    this.#acked = position;
    let done = 0;
    for (const { bytes, from, taken } of this.#segments) {
      if (from + bytes.length > position) break;
      taken();
      done += 1;
    }
    if (done > 0) this.#segments.splice(0, done);
    this.#next -= done;
    this.#wakeRoom();
  }

  /** After a cut: what the guest has not taken is sent again from `position` on a new connection. */
  rewind(position: number, window: number): void {
    this.#window = window;
    this.ack(position);
    this.#sent = position;
    this.#next = 0;
    this.#endSent = false;
  }

  /** Nothing more is sent, and nobody waits any longer. */
  fail(error: CaissonError): void {
    if (this.#failure) return;
    this.#failure = error;
    const waiting = this.#segments;
    this.#segments = [];
    this.#next = 0;
    this.#end = this.#sent;
    for (const segment of waiting) segment.failed(error);
    this.#wakeRoom();
  }

  #wakeRoom(): void {
    const waiters = this.#roomWaiters;
    this.#roomWaiters = [];
    for (const wake of waiters) wake();
  }
}
