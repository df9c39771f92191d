/** Bytes with the tag they came with. */
export interface Piece {
  readonly tag: number;
  readonly bytes: Uint8Array;
}

/** Pieces below this many bytes are copied together instead of being kept one by one. */
const smallBytes = 1024;
const packBytes = 64 * 1024;

/** Small pieces in one buffer. A run is a piece: its length times four plus its tag. */
interface Pack {
  buffer: Uint8Array;
  fill: number;
  taken: number;
  runs: number[];
  runsTaken: number;
}

/**
 * A queue of pieces whose memory stays close to the bytes in it, however small the pieces are: a
 * hostile sender can make each piece one byte long.
 */
export class PieceQueue {
  readonly #join: boolean;
  #entries: (Piece | Pack)[] = [];
  #head = 0;
  #bytes = 0;

  /** With `join`, neighbours with the same tag may become one piece; otherwise each stays itself. */
  constructor(options: { join: boolean }) {
    this.#join = options.join;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get empty(): boolean {
    return this.#head === this.#entries.length;
  }

  /** Appends a copy of the bytes. */
  push(tag: number, bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    if (bytes.length >= smallBytes) {
      this.#entries.push({ tag, bytes: new Uint8Array(bytes) });
      return;
    }
    const last = this.empty ? undefined : this.#entries.at(-1);
    const pack =
      last && "runs" in last && last.fill + bytes.length <= packBytes ? last : this.#newPack(bytes.length);
    append(pack, tag, bytes, this.#join);
  }

  shift(): Piece | undefined {
    const entry = this.#entries[this.#head];
    if (!entry) return undefined;
    const piece = "runs" in entry ? takeRun(entry) : entry;
    if (!("runs" in entry) || entry.runsTaken === entry.runs.length) this.#drop();
    this.#bytes -= piece.bytes.length;
    return piece;
  }

  clear(): void {
    this.#entries = [];
    this.#head = 0;
    this.#bytes = 0;
  }

  #newPack(atLeast: number): Pack {
    const pack = { buffer: new Uint8Array(Math.max(atLeast, 64)), fill: 0, taken: 0, runs: [], runsTaken: 0 };
    this.#entries.push(pack);
    return pack;
  }

  #drop(): void {
    // The entry may hold a large buffer: let go of it before the array is compacted.
    this.#entries[this.#head] = undefined as never;
    this.#head += 1;
    if (this.#head === this.#entries.length) {
      this.#entries = [];
      this.#head = 0;
    } else if (this.#head >= 64 && this.#head * 2 >= this.#entries.length) {
      this.#entries.splice(0, this.#head);
      this.#head = 0;
    }
  }
}

function append(pack: Pack, tag: number, bytes: Uint8Array, join: boolean): void {
  if (pack.fill + bytes.length > pack.buffer.length) {
    const size = Math.min(packBytes, Math.max(pack.buffer.length * 2, pack.fill + bytes.length));
    const larger = new Uint8Array(size);
    larger.set(pack.buffer.subarray(0, pack.fill));
    pack.buffer = larger;
  }
  pack.buffer.set(bytes, pack.fill);
  pack.fill += bytes.length;
  const last = pack.runs.length - 1;
  const joins = join && last >= pack.runsTaken && (pack.runs[last]! & 3) === tag;
  if (joins) pack.runs[last]! += bytes.length * 4;
  else pack.runs.push(bytes.length * 4 + tag);
}

function takeRun(pack: Pack): Piece {
  const run = pack.runs[pack.runsTaken]!;
  pack.runsTaken += 1;
  const start = pack.taken;
  pack.taken += run >> 2;
  return { tag: run & 3, bytes: pack.buffer.subarray(start, pack.taken) };
}
