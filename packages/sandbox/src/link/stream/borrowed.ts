// Memory for bytes on their way from one socket to another. Memory of its own for each read would make the garbage collector the
// busiest part of the daemon: what is lent here comes back when it was written, and is lent again.

const smallBytes = 8 * 1024;
/** The sizes that are kept. */
const sizes = [64 * 1024, 256 * 1024] as const;
/** Of each size. */
const mostKept = 8;

const kept = new Map<number, ArrayBuffer[]>(sizes.map((size) => [size, []]));
/** What is lent, and how much of it. Who loses it loses it to the garbage collector. */
const lent = new WeakMap<ArrayBufferLike, number>();

/** A copy of bytes that are valid for a moment only. */
export function borrow(bytes: Uint8Array): Buffer {
  const size = sizes.find((one) => one >= bytes.length);
  if (bytes.length < smallBytes || size === undefined) return Buffer.from(bytes);
  const memory = kept.get(size)!.pop() ?? new ArrayBuffer(size);
  lent.set(memory, bytes.length);
  const copy = Buffer.from(memory, 0, bytes.length);
  copy.set(bytes);
  return copy;
}

/**
 * Gives it back. Nobody may hold it any more: the next one to borrow it writes into it. Only what was borrowed is taken, whole and once.
 */
export function giveBack(bytes: Uint8Array): void {
  const memory = bytes.buffer as ArrayBuffer;
  if (lent.get(memory) !== bytes.length || bytes.byteOffset !== 0) return;
  lent.delete(memory);
  const list = kept.get(memory.byteLength)!;
  if (list.length < mostKept) list.push(memory);
}
