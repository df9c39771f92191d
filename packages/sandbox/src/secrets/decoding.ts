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
export function readable(coding: string | undefined, status: number, method: string): Readable | undefined {
  const encoding = coding?.trim().toLowerCase();
  const bodiless = method === "HEAD" || status === 204 || status === 304;
  if (bodiless || !encoding || encoding === "identity") return { decoder: new PassThrough(), decoded: false };
  // A part of something compressed begins in the middle.
  const make = status === 206 ? undefined : decoders[encoding];
  return make && { decoder: make(), decoded: true };
}
