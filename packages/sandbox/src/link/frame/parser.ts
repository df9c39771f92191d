import { LinkViolation } from "../violation.ts";
import { frameType, headerBytes, maxFrameBytes, maxMessageBytes } from "./frame.ts";

/** What a parser finds, in the order of the bytes, which are valid only during the call. */
export interface FrameHandler {
  /** A piece of a DATA payload, a view of the received chunk; `left` bytes of the same frame follow. */
  data(stream: number, tag: number, piece: Uint8Array, left: number): void;
  /** Any other frame, whole. */
  message(type: number, stream: number, payload: Uint8Array): void;
}

const nothing = new Uint8Array(0);

/**
 * Cuts received chunks into frames. DATA is handed on piece by piece without being copied; only
 * messages that span chunks are put together, so that a parser never holds more than one message.
 */
export class FrameParser {
  readonly #handler: FrameHandler;
  readonly #header = Buffer.alloc(headerBytes);
  #headerFill = 0;
  #inPayload = false;
  #type = 0;
  #tag = 0;
  #stream = 0;
  #left = 0;
  #message: Uint8Array = nothing;
  #messageFill = 0;

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  /** Throws LinkViolation at the first byte that breaks the rules; no further call is allowed then. */
  push(chunk: Uint8Array): void {
    let at = 0;
    for (;;) {
      if (this.#inPayload) {
        const length = Math.min(this.#left, chunk.length - at);
        if (length === 0) return;
        this.#left -= length;
        this.#inPayload = this.#left > 0;
        this.#payload(chunk.subarray(at, at + length));
        at += length;
      } else if (this.#headerFill === 0 && chunk.length - at >= headerBytes) {
        this.#begin(chunk, at);
        at += headerBytes;
      } else {
        const length = Math.min(headerBytes - this.#headerFill, chunk.length - at);
        this.#header.set(chunk.subarray(at, at + length), this.#headerFill);
        this.#headerFill += length;
        at += length;
        if (this.#headerFill < headerBytes) return;
        this.#headerFill = 0;
        this.#begin(this.#header, 0);
      }
    }
  }

  #begin(bytes: Uint8Array, at: number): void {
    const length = uint32(bytes, at);
    this.#stream = uint32(bytes, at + 4);
    this.#type = bytes[at + 8]!;
    this.#tag = bytes[at + 9]!;
    if (bytes[at + 10] !== 0 || bytes[at + 11] !== 0) throw new LinkViolation("a reserved byte is not zero");
    checkHeader(this.#type, this.#tag, this.#stream, length);
    this.#left = length;
    this.#messageFill = 0;
    if (length === 0) this.#payload(nothing);
    else this.#inPayload = true;
  }

  #payload(piece: Uint8Array): void {
    if (this.#type === frameType.data) {
      this.#handler.data(this.#stream, this.#tag, piece, this.#left);
      return;
    }
    if (this.#messageFill === 0 && this.#left === 0) {
      this.#handler.message(this.#type, this.#stream, piece);
      return;
    }
    if (this.#messageFill === 0) this.#message = new Uint8Array(piece.length + this.#left);
    this.#message.set(piece, this.#messageFill);
    this.#messageFill += piece.length;
    if (this.#left > 0) return;
    const whole = this.#message;
    this.#message = nothing;
    this.#handler.message(this.#type, this.#stream, whole);
  }
}

function checkHeader(type: number, tag: number, stream: number, length: number): void {
  if ((stream === 0) !== (type === frameType.control)) {
    throw new LinkViolation("a frame is on a stream where its type does not belong");
  }
  if (tag !== 0 && !(type === frameType.data && tag <= 2)) throw new LinkViolation("an unknown tag");
  switch (type) {
    case frameType.data:
      if (length > maxFrameBytes) throw new LinkViolation("a frame is too long");
      return;
    case frameType.control:
    case frameType.reset:
      if (length > maxMessageBytes) throw new LinkViolation("a message is too long");
      return;
    case frameType.ack:
      if (length !== 8) throw new LinkViolation("an ACK is not eight bytes long");
      return;
    case frameType.end:
      if (length !== 0) throw new LinkViolation("an END has a payload");
      return;
    default:
      throw new LinkViolation("an unknown frame type");
  }
}

function uint32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}
