// The content of a layer, uncompressed, and checked against the digests that the image gives for it.
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { CaissonError } from "@caisson/contract";
import { wrong } from "./config.ts";

/** The same bytes without gzip or zstd, if they have it. */
export async function* uncompressed(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const [first, whole] = await peek(source);
  const gzip = first.length >= 2 && first[0] === 0x1f && first[1] === 0x8b;
  const zstd = first.length >= 4 && first.readUInt32LE(0) === 0xfd2fb528;
  if (!gzip && !zstd) return yield* whole;
  const decoder = gzip ? createGunzip() : createZstdDecompress();
  const input = Readable.from(whole, { objectMode: false });
  input.on("error", (error) => decoder.destroy(error));
  input.pipe(decoder);
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    throw error instanceof CaissonError ? error : wrong("it is compressed wrongly");
  } finally {
    input.destroy();
    decoder.destroy();
  }
}

/** The same bytes; fails at the end if they are not what the digest says, and as soon as they are too many. */
export async function* checked(
  source: AsyncIterable<Buffer>,
  digest: string | undefined,
  maxBytes: number,
  count: (bytes: number) => void = () => {},
): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of source) {
    bytes += piece.length;
    if (bytes > maxBytes)
      throw new CaissonError("TOO_LARGE", `the image unpacks to more than ${maxBytes} bytes`);
    hash.update(piece);
    count(piece.length);
    yield piece;
  }
  if (digest !== undefined && hash.digest("hex") !== digest)
    throw wrong("a layer is not what its digest says");
}

async function peek(source: AsyncIterable<Buffer>): Promise<[Buffer, AsyncIterable<Buffer>]> {
  const iterator = source[Symbol.asyncIterator]();
  let first: Buffer = Buffer.alloc(0);
  let over = false;
  while (first.length < 4 && !over) {
    const next = await iterator.next();
    over = next.done ?? false;
    if (!next.done) first = first.length === 0 ? next.value : Buffer.concat([first, next.value]);
  }
  const whole = (async function* () {
    try {
      if (first.length > 0) yield first;
      if (!over) yield* { [Symbol.asyncIterator]: () => iterator };
    } finally {
      await iterator.return?.();
    }
  })();
  return [first, whole];
}
