import { endOf, type Piece, type Tag } from "./piece.ts";

/** What keeping a piece costs beside its bytes. */
const pieceCost = 128;
/**
 * Bytes are copied into blocks, and neighbours in a block are one piece. A process's first blocks are small; the large
 * ones are used again and again, by all processes: memory made anew for every byte of output would keep the garbage
 * collector busier than everything else.
 */
const blockSizes = [1024, 16 * 1024, 256 * 1024];
const largeBlockBytes = 256 * 1024;
const maxFreeBlocks = 32;
const freeBlocks: Uint8Array[] = [];
const none = new Uint8Array(0);

/** Memory that all process logs together may use for output that is also in files. */
export class MemoryBudget {
  readonly limit: number;
  used = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get exceeded(): boolean {
    return this.used > this.limit;
  }
}

/** The latest pieces of one process's output, oldest first. */
export class RecentOutput {
  readonly #budget: MemoryBudget;
  #pieces: Piece[] = [];
  /** Pieces before this index are dropped. */
  #first = 0;
  #end: number;
  #cost = 0;
  /** The last block and how much of it is used. */
  #block: Uint8Array = none;
  #fill = 0;

  constructor(budget: MemoryBudget, position: number) {
    this.#budget = budget;
    this.#end = position;
  }

  get end(): number {
    return this.#end;
  }

  /** The first position that is here; `end` if there is nothing. */
  get start(): number {
    return this.#pieces[this.#first]?.from ?? this.#end;
  }

  get count(): number {
    return this.#pieces.length - this.#first;
  }

  get cost(): number {
    return this.#cost;
  }

  /** Appends a copy of the bytes, which are only lent. */
  push(tag: Tag, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#fill === this.#block.length) this.#newBlock(bytes.length - at);
      const part = bytes.subarray(at, at + this.#block.length - this.#fill);
      this.#block.set(part, this.#fill);
      this.#append(tag, part.length);
      at += part.length;
    }
  }

  /** Pieces from a position on, at most about so many bytes; the first may be cut to begin there. They
   * are views, valid until dropped. */
  from(position: number, maxBytes: number): Piece[] {
    const found: Piece[] = [];
    let bytes = 0;
    for (let index = this.#indexOf(position); index < this.#pieces.length && bytes < maxBytes; index++) {
      const piece = after(this.#pieces[index]!, position);
      found.push(piece);
      bytes += piece.bytes.length;
    }
    return found;
  }

  /** Drops the oldest piece. */
  drop(): void {
    const piece = this.#pieces[this.#first]!;
    this.#pay(-(piece.bytes.length + pieceCost));
    this.#pieces[this.#first] = undefined as never;
    this.#first++;
    if (this.#first === this.#pieces.length || this.#first > 1024) {
      this.#pieces.splice(0, this.#first);
      this.#first = 0;
    }
    const block = piece.bytes.buffer;
    if (this.oldest()?.bytes.buffer === block) return;
    if (block === this.#block.buffer) {
      this.#block = none;
      this.#fill = 0;
    }
    release(block);
  }

  clear(): void {
    while (this.count > 0) this.drop();
  }

  oldest(): Piece | undefined {
    return this.#pieces[this.#first];
  }

  /** Takes what was just copied behind the used part of the block into a piece. Earlier views of it stay valid. */
  #append(tag: Tag, length: number): void {
    const last = this.count > 0 ? this.#pieces.at(-1)! : undefined;
    const end = this.#fill + length;
    if (last?.tag === tag && last.bytes.buffer === this.#block.buffer) {
      const bytes = this.#block.subarray(last.bytes.byteOffset, end);
      this.#pieces[this.#pieces.length - 1] = { tag, from: last.from, bytes };
      this.#pay(length);
    } else {
      this.#pieces.push({ tag, from: this.#end, bytes: this.#block.subarray(this.#fill, end) });
      this.#pay(length + pieceCost);
    }
    this.#fill = end;
    this.#end += length;
  }

  #newBlock(wanted: number): void {
    const size = blockSizes.find((bytes) => bytes > this.#block.length && bytes >= wanted) ?? largeBlockBytes;
    this.#block = (size === largeBlockBytes && freeBlocks.pop()) || Buffer.allocUnsafeSlow(size);
    this.#fill = 0;
  }

  #pay(cost: number): void {
    this.#cost += cost;
    this.#budget.used += cost;
  }

  /** Of the piece that holds a position. */
  #indexOf(position: number): number {
    let low = this.#first;
    let high = this.#pieces.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (endOf(this.#pieces[middle]!) <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** No piece lies in it any more: the next one to need a block may write over it. */
function release(block: ArrayBufferLike): void {
  if (block.byteLength === largeBlockBytes && freeBlocks.length < maxFreeBlocks)
    freeBlocks.push(new Uint8Array(block));
}

/** What of a piece lies at or after a position. */
export function after(piece: Piece, position: number): Piece {
  if (position <= piece.from) return piece;
  return { tag: piece.tag, from: position, bytes: piece.bytes.subarray(position - piece.from) };
}
