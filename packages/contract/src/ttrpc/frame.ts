import { rules } from "../rules.ts";

/** Bytes before every ttRPC payload: length and stream as big-endian u32, then type and flags. */
export const headerBytes = 10;

export const messageType = { request: 1, response: 2, data: 3 } as const;

export const flag = {
  /** The sender will send no more on this stream. */
  remoteClosed: 1,
  /** The sender will send more on this stream. */
  remoteOpen: 2,
  /** The frame carries no message, which an empty payload alone does not say. */
  noData: 4,
} as const;

/** Writes a header at the start of `target`. */
export function writeHeader(
  target: Uint8Array,
  length: number,
  stream: number,
  type: number,
  flags: number,
): void {
  target[0] = length >>> 24;
  target[1] = length >>> 16;
  target[2] = length >>> 8;
  target[3] = length;
  target[4] = stream >>> 24;
  target[5] = stream >>> 16;
  target[6] = stream >>> 8;
  target[7] = stream;
  target[8] = type;
  target[9] = flags;
}

/** A whole frame in one buffer. For payloads that are large, send `header` and payload side by side instead. */
export function encodeFrame(stream: number, type: number, flags: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + payload.length);
  writeHeader(frame, payload.length, stream, type, flags);
  frame.set(payload, headerBytes);
  return frame;
}

/** A header alone, for a payload that is written after it. */
export function encodeHeader(stream: number, type: number, flags: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(headerBytes);
  writeHeader(header, length, stream, type, flags);
  return header;
}

/** What a decoder tells its owner. */
export interface FrameSink {
  /** The payload is a view of the chunk that was pushed, unless the decoder owns its bytes. */
  frame(stream: number, type: number, flags: number, payload: Buffer): void;
  /** A frame longer than a message may be. Its bytes are skipped as they come and never held. */
  oversize(stream: number, type: number, length: number): void;
}

export interface DecoderOptions {
  /** The pushed chunks are overwritten afterwards (`onread`): payloads are then always copies. Default: false. */
  chunksAreReused?: boolean;
  /** Makes room for a payload that comes in parts. Default: memory of its own. */
  makeRoom?: (length: number) => Buffer;
  /** Longest payload. Default and maximum: `sizes.message_bytes`. */
  maxPayloadBytes?: number;
}

/** Cuts a byte stream into frames. Holds at most one message. */
export class FrameDecoder {
  readonly #sink: FrameSink;
  readonly #copies: boolean;
  readonly #maxPayload: number;
  readonly #makeRoom: (length: number) => Buffer;
  readonly #header = Buffer.allocUnsafe(headerBytes);
  #headerFilled = 0;
  #payload: Buffer | undefined;
  #payloadFilled = 0;
  #skip = 0;

  constructor(sink: FrameSink, options: DecoderOptions = {}) {
    this.#sink = sink;
    this.#copies = options.chunksAreReused ?? false;
    this.#makeRoom = options.makeRoom ?? Buffer.allocUnsafeSlow;
    this.#maxPayload = options.maxPayloadBytes ?? rules.sizes.message_bytes;
  }

  /** True when the stream may end here without having cut a frame in two. */
  get atBoundary(): boolean {
    return this.#headerFilled === 0 && this.#skip === 0;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, chunk.length - at);
        this.#skip -= skipped;
        at += skipped;
      } else if (this.#payload !== undefined) {
        at += this.#fillPayload(chunk, at);
      } else if (this.#headerFilled === 0 && chunk.length - at >= headerBytes) {
        at = this.#begin(chunk, at, chunk, at + headerBytes);
      } else {
        const taken = Math.min(headerBytes - this.#headerFilled, chunk.length - at);
        chunk.copy(this.#header, this.#headerFilled, at, at + taken);
        this.#headerFilled += taken;
        at += taken;
        if (this.#headerFilled === headerBytes) {
          this.#headerFilled = 0;
          at = this.#begin(this.#header, 0, chunk, at);
        }
      }
    }
  }

  /** Reads a header; returns the position in `chunk` after what was consumed. */
  #begin(header: Buffer, headerAt: number, chunk: Buffer, at: number): number {
    const length = header.readUInt32BE(headerAt);
    const stream = header.readUInt32BE(headerAt + 4);
    const type = header[headerAt + 8]!;
    if (length > this.#maxPayload) {
      this.#skip = length;
      this.#sink.oversize(stream, type, length);
      return at;
    }
    if (chunk.length - at >= length) {
      const view = chunk.subarray(at, at + length);
      this.#sink.frame(stream, type, header[headerAt + 9]!, this.#copies ? Buffer.from(view) : view);
      return at + length;
    }
    if (header !== this.#header) header.copy(this.#header, 0, headerAt, headerAt + headerBytes);
    this.#headerFilled = headerBytes;
    this.#payload = this.#makeRoom(length);
    this.#payloadFilled = 0;
    return at;
  }

  #fillPayload(chunk: Buffer, at: number): number {
    const payload = this.#payload!;
    const taken = Math.min(payload.length - this.#payloadFilled, chunk.length - at);
    chunk.copy(payload, this.#payloadFilled, at, at + taken);
    this.#payloadFilled += taken;
    if (this.#payloadFilled === payload.length) {
      this.#payload = undefined;
      this.#headerFilled = 0;
      this.#sink.frame(this.#header.readUInt32BE(4), this.#header[8]!, this.#header[9]!, payload);
    }
    return taken;
  }
}
