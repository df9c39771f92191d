import { blockBytes, type Entry, hostile, padding, parseHeader, parsePax } from "./header.ts";

/** Longest content of a record that only names something. */
const maxRecordBytes = 64 * 1024;

/** Takes exact amounts out of chunks of any size. */
class Chunks {
  readonly #source: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** At most `bytes`, at least one; empty at the end. */
  async some(bytes: number): Promise<Buffer> {
    while (this.#held.length === 0) {
      const { done, value } = await this.#source.next();
      if (done) return this.#held;
      this.#held = Buffer.from(value.buffer, value.byteOffset, value.length);
    }
    const taken = this.#held.subarray(0, bytes);
    this.#held = this.#held.subarray(taken.length);
    return taken;
  }

  async exactly(bytes: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let left = bytes; left > 0; ) {
      const part = await this.some(left);
      if (part.length === 0) throw hostile("the archive ends in the middle");
      parts.push(part);
      left -= part.length;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  /** Reads to the end, so that the sender can finish. */
  async drain(): Promise<void> {
    while ((await this.some(Infinity)).length > 0);
  }
}

/** The entries of a tar. Each one's content must be read, or skipped by going on, before the next. */
export async function* readTar(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ entry: Entry; content: AsyncIterable<Uint8Array> }> {
  const chunks = new Chunks(source);
  let overrides = new Map<string, string>();
  for (;;) {
    const header = parseHeader(await chunks.exactly(blockBytes));
    if (!header) return chunks.drain();
    const { letter, entry } = header;
    if ("xgLK".includes(letter)) {
      const content = await record(chunks, entry.size);
      if (letter === "x") overrides = new Map([...overrides, ...parsePax(content)]);
      if (letter === "L") overrides.set("path", untilNul(content));
      if (letter === "K") overrides.set("linkpath", untilNul(content));
      continue;
    }
    apply(entry, overrides);
    overrides = new Map();
    const size = entry.type === "file" ? entry.size : 0;
    const body = new Content(chunks, size);
    yield { entry, content: body };
    await body.skip();
    await chunks.exactly(padding(size).length);
  }
}

async function record(chunks: Chunks, size: number): Promise<Buffer> {
  if (size > maxRecordBytes) throw hostile("the archive has a name that is too long");
  const content = Buffer.from(await chunks.exactly(size));
  await chunks.exactly(padding(size).length);
  return content;
}

function untilNul(content: Buffer): string {
  const end = content.indexOf(0);
  return content.toString("utf8", 0, end === -1 ? undefined : end);
}

function apply(entry: Entry, overrides: Map<string, string>): void {
  entry.name = overrides.get("path") ?? entry.name;
  entry.target = overrides.get("linkpath") ?? entry.target;
  const size = overrides.get("size");
  if (size === undefined) return;
  entry.size = Number(size);
  if (!Number.isSafeInteger(entry.size) || entry.size < 0)
    throw hostile("the archive has an impossible size");
}

class Content implements AsyncIterable<Uint8Array> {
  readonly #chunks: Chunks;
  #left: number;

  constructor(chunks: Chunks, size: number) {
    this.#chunks = chunks;
    this.#left = size;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    while (this.#left > 0) {
      const part = await this.#chunks.some(this.#left);
      if (part.length === 0) throw hostile("the archive ends in the middle");
      this.#left -= part.length;
      yield part;
    }
  }

  async skip(): Promise<void> {
    for await (const _ of this);
  }
}
