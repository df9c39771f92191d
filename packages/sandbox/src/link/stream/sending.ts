import { LinkViolation } from "../violation.ts";

/** The daemon's half of a connection: bytes are let go as soon as they are written, since nothing is ever sent twice. */
export class Sending {
  readonly #window: number;
  #waiting: Uint8Array[] = [];
  /** Of the first that waits. */
  #at = 0;
  #sent = 0;
  #acked = 0;
  /** Pieces that are taken and that the socket may still read. */
  #writing = 0;
  /** Told when everything that was given has been written. */
  #drained: (() => void) | undefined;
  #ending = false;
  #ended = false;

  constructor(window: number) {
    this.#window = window;
  }

  /** The bytes must not be changed until `written` is called. */
  give(pieces: readonly Uint8Array[], written: () => void): void {
    this.#waiting.push(...pieces);
    this.#drained = written;
  }

  end(): void {
    this.#ending = true;
  }

  take(max: number): Uint8Array | undefined {
    const room = Math.min(max, this.#window - (this.#sent - this.#acked));
    const [first] = this.#waiting;
    if (first === undefined || room <= 0) return undefined;
    const piece = first.subarray(this.#at, this.#at + room);
    this.#at += piece.length;
    this.#sent += piece.length;
    this.#writing += 1;
    if (this.#at === first.length) {
      this.#waiting.shift();
      this.#at = 0;
    }
    return piece;
  }

  /** The socket is done with the piece that was taken first. */
  written(): void {
    this.#writing -= 1;
    if (this.#writing > 0 || this.#waiting.length > 0) return;
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  /** True once, when everything is sent. */
  takeEnd(): boolean {
    if (!this.#ending || this.#ended || this.#waiting.length > 0) return false;
    this.#ended = true;
    return true;
  }

  ack(position: number): void {
    if (!(position >= this.#acked && position <= this.#sent)) {
      throw new LinkViolation("an ACK beyond what was sent");
    }
    this.#acked = position;
  }

  /** Nothing more is sent. */
  stop(): void {
    this.#waiting = [];
    this.#ending = false;
    this.#drained = undefined;
  }
}
