import { endOf, type Piece, type Tag } from "./piece.ts";

/** What keeping a piece costs beside its bytes. */
const pieceCost = 128;
/** Pieces are joined up to this size, so that many tiny writes do not become many objects. */
const joinBytes = 16 * 1024;

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
  /** The buffer behind the last piece, if pieces were joined in it. */
  #joined: Uint8Array | undefined;

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
    const last = this.count > 0 ? this.#pieces.at(-1)! : undefined;
    if (last?.tag === tag && last.bytes.length + bytes.length <= joinBytes) {
      this.#pieces[this.#pieces.length - 1] = { tag, from: last.from, bytes: this.#join(last.bytes, bytes) };
      this.#pay(bytes.length);
    } else {
      this.#pieces.push({ tag, from: this.#end, bytes: new Uint8Array(bytes) });
      this.#pay(bytes.length + pieceCost);
    }
    this.#end += bytes.length;
  }

  /** Pieces from a position on, at most about so many bytes; the first may be cut to begin there. */
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
  }

  clear(): void {
    while (this.count > 0) this.drop();
  }

  oldest(): Piece | undefined {
    return this.#pieces[this.#first];
  }

  /** Views of the shorter piece stay valid: bytes are only ever added behind them. */
  #join(old: Uint8Array, added: Uint8Array): Uint8Array {
    const length = old.length + added.length;
    if (this.#joined?.buffer !== old.buffer || this.#joined.length < length) {
      this.#joined = new Uint8Array(Math.min(joinBytes, Math.max(256, length * 2)));
      this.#joined.set(old);
    }
    this.#joined.set(added, old.length);
    return this.#joined.subarray(0, length);
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

/** What of a piece lies at or after a position. */
export function after(piece: Piece, position: number): Piece {
  if (position <= piece.from) return piece;
  return { tag: piece.tag, from: position, bytes: piece.bytes.subarray(position - piece.from) };
}
