import type { Duplex } from "node:stream";
import type { Intake } from "../stream/intake.ts";
import { encodeAck, encodeFrame, encodeHeader, frameType } from "./frame.ts";

/** A stream that has bytes to send. */
export interface DataSource {
  readonly stream: number;
  /** The next bytes that its window allows, at most `max`; nothing when it must wait. */
  take(max: number): Uint8Array | undefined;
  /** Told for each piece when the socket is done with its bytes. */
  written?(): void;
  /** True once, when everything is sent and the stream is to be ended. */
  takeEnd(): boolean;
}

/** DATA is sent in pieces of this size, in turn, so that streams share the link fairly. */
const pieceBytes = 64 * 1024;
const smallBytes = 4096;
/** With this much unread by the guest it does not read at all. */
const maxQueuedBytes = 8 * 1024 * 1024;
/** An acknowledgement of this part of a window is sent at once; of less, in a moment, together with others. */
const ackAtOncePart = 1 / 4;
const ackDelayMs = 10;

/** Writes frames to a socket: those of one turn in one system call, DATA only as fast as it is read. */
export class FrameWriter {
  readonly #socket: Duplex;
  readonly #onStuffed: () => void;
  #corked = false;
  #closed = false;
  readonly #sources = new Set<DataSource>();
  readonly #acks = new Set<Intake>();
  #ackTimer: NodeJS.Timeout | undefined;
  /** The guest has read what waited for it since this was last set to false. */
  drained = false;

  /** `onStuffed` is told when the peer has left too much unread; nothing is written from then on. */
  constructor(socket: Duplex, onStuffed: () => void) {
    this.#socket = socket;
    this.#onStuffed = onStuffed;
    socket.on("drain", () => {
      this.drained = true;
      this.#flushAcks();
      this.#pump();
    });
  }

  get congested(): boolean {
    return this.#socket.writableNeedDrain;
  }

  message(type: number, stream: number, payload: Uint8Array): void {
    this.#write(encodeFrame(type, stream, payload));
  }

  /** What was written in this turn leaves now: its sender has more to do before the turn ends. */
  push(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#socket.uncork();
  }

  /** Sends what the source has, now and whenever there is room. */
  offer(source: DataSource): void {
    this.#sources.add(source);
    this.#pump();
  }

  withdraw(source: DataSource): void {
    this.#sources.delete(source);
  }

  /** Tells the guest how far its data is taken, soon. */
  acknowledge(intake: Intake): void {
    if (this.#closed) return;
    if (intake.taken - intake.acked >= intake.window * ackAtOncePart && !this.congested) {
      this.#ack(intake);
      return;
    }
    this.#acks.add(intake);
    this.#ackTimer ??= setTimeout(() => {
      this.#ackTimer = undefined;
      this.#flushAcks();
    }, ackDelayMs).unref();
  }

  /** The stream is over: its acknowledgement interests nobody any more. */
  dropAck(intake: Intake): void {
    this.#acks.delete(intake);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#ackTimer);
    this.#sources.clear();
    this.#acks.clear();
  }

  #flushAcks(): void {
    for (const intake of this.#acks) {
      if (this.congested) return;
      this.#ack(intake);
    }
  }

  #ack(intake: Intake): void {
    this.#acks.delete(intake);
    if (intake.taken <= intake.acked) return;
    intake.acked = intake.taken;
    this.#write(encodeAck(intake.stream, intake.taken));
  }

  #pump(): void {
    while (!this.#closed && !this.congested) {
      const source = this.#sources.values().next().value;
      if (!source) return;
      this.#sources.delete(source);
      const piece = source.take(pieceBytes);
      if (piece) {
        this.#data(source, piece);
        this.#sources.add(source);
      } else if (source.takeEnd()) {
        this.#write(encodeHeader(frameType.end, source.stream, 0, 0));
      }
    }
  }

  #data(source: DataSource, piece: Uint8Array): void {
    // One small buffer is written faster than two.
    if (piece.length <= smallBytes) {
      this.#write(encodeFrame(frameType.data, source.stream, piece), source);
      return;
    }
    this.#write(encodeHeader(frameType.data, source.stream, 0, piece.length));
    this.#write(piece, source);
  }

  #write(bytes: Uint8Array, source?: DataSource): void {
    if (this.#closed) return;
    if (this.#socket.writableLength > maxQueuedBytes) {
      this.close();
      this.#onStuffed();
      return;
    }
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
      process.nextTick(() => this.push());
    }
    if (source?.written)
      this.#socket.write(bytes, (error) => {
        if (!error) source.written!();
      });
    else this.#socket.write(bytes);
  }
}
