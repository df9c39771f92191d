import type { Piece, Tag } from "./piece.ts";

/** A record in a segment file: one byte of tag, four of length (little-endian), then the bytes. */
export const headerBytes = 5;

/** Buffers that, written one after the other, are the records of these pieces. */
export function encodeRecords(pieces: readonly Piece[]): Uint8Array[] {
  const headers = Buffer.allocUnsafe(pieces.length * headerBytes);
  return pieces.flatMap((piece, index) => {
    const at = index * headerBytes;
    headers.writeUInt8(piece.tag, at);
    headers.writeUInt32LE(piece.bytes.length, at + 1);
    return [headers.subarray(at, at + headerBytes), piece.bytes];
  });
}

/** The header at an offset; undefined if there is none or it is not one that was written here. */
export function decodeHeader(bytes: Buffer, at: number): { tag: Tag; length: number } | undefined {
  if (at + headerBytes > bytes.length) return undefined;
  const tag = bytes.readUInt8(at);
  const length = bytes.readUInt32LE(at + 1);
  return (tag === 1 || tag === 2) && length > 0 ? { tag, length } : undefined;
}
