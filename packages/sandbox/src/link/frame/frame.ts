import { rules } from "@caisson/contract";

/** Bytes before each payload. */
export const headerBytes = 12;

export const frameType = { control: 1, data: 2, ack: 3, end: 4, reset: 5 } as const;

/** The longest payload of any frame. */
export const maxFrameBytes: number = rules.link.frame_bytes;

/** Bytes that a sender may have sent and not acknowledged, per stream and direction. */
export const windowBytes: number = rules.link.window_bytes;

/** The same for what a guest sends on connections, of which there may be many at once. */
export const connectionWindowBytes: number = rules.link.connection_window_bytes;

/** Streams from here on are opened by the guest. */
export const firstGuestStream = 0x8000_0000;

/**
 * The longest CONTROL or RESET payload that a guest may send. Messages grow when they are decoded,
 * bytes of DATA do not; so what is decoded gets the smaller bound.
 */
export const maxMessageBytes: number = rules.link.frame_bytes / 2;

/** A whole frame in one buffer; for payloads that are small enough to copy. */
export function encodeFrame(type: number, stream: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + payload.length);
  writeHeader(frame, type, stream, 0, payload.length);
  frame.set(payload, headerBytes);
  return frame;
}

/** The header alone; the payload is written after it without being copied. */
export function encodeHeader(type: number, stream: number, tag: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(headerBytes);
  writeHeader(header, type, stream, tag, length);
  return header;
}

export function encodeAck(stream: number, position: number): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + 8);
  writeHeader(frame, frameType.ack, stream, 0, 8);
  frame.writeUInt32LE(position % 0x1_0000_0000, headerBytes);
  frame.writeUInt32LE(Math.floor(position / 0x1_0000_0000), headerBytes + 4);
  return frame;
}

/** The position in an ACK, or NaN when it is beyond what a number holds exactly. */
export function decodeAck(payload: Uint8Array): number {
  const view = new DataView(payload.buffer, payload.byteOffset, 8);
  const position = view.getUint32(4, true) * 0x1_0000_0000 + view.getUint32(0, true);
  return Number.isSafeInteger(position) ? position : Number.NaN;
}

function writeHeader(into: Buffer, type: number, stream: number, tag: number, length: number): void {
  into.writeUInt32LE(length, 0);
  into.writeUInt32LE(stream, 4);
  into[8] = type;
  into[9] = tag;
  into[10] = 0;
  into[11] = 0;
}
