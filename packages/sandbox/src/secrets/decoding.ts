import type { IncomingMessage } from "node:http";
import { PassThrough, type Transform } from "node:stream";
import { createBrotliDecompress, createUnzip, createZstdDecompress } from "node:zlib";

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createUnzip,
  "x-gzip": createUnzip,
  deflate: createUnzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

export interface Readable {
  /** What makes the body readable. */
  decoder: Transform;
  /** The body is another one than the headers say. */
  decoded: boolean;
}

/** Makes an answer readable that was compressed although nobody asked for that; undefined if that cannot be done. */
export function readable(incoming: IncomingMessage, method: string): Readable | undefined {
  const encoding = incoming.headers["content-encoding"]?.trim().toLowerCase();
  const bodiless = method === "HEAD" || incoming.statusCode === 204 || incoming.statusCode === 304;
  if (bodiless || !encoding || encoding === "identity") return { decoder: new PassThrough(), decoded: false };
  // A part of something compressed begins in the middle.
  const make = incoming.statusCode === 206 ? undefined : decoders[encoding];
  return make && { decoder: make(), decoded: true };
}
