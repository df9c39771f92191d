// Memory for bytes on their way from one socket to another. Memory of its own for each read would make the garbage collector the
// busiest part of the daemon: what is lent here comes back when it was written, and is lent again.

const smallBytes = 8 * 1024;
/** The sizes that are kept; the larger for a message around a piece of 256 KiB. */
const sizes = [64 * 1024, 260 * 1024] as const;
/** Of each size. */
const mostKept = 8;

const kept = new Map<number, ArrayBuffer[]>(sizes.map((size) => [size, []]));
/** What is lent, and how much of it. Who loses it loses it to the garbage collector. */
const lent = new WeakMap<ArrayBufferLike, number>();

/** A copy of bytes that are valid for a moment only. */
export function borrow(bytes: Uint8Array): Buffer {
  if (bytes.length < smallBytes) return Buffer.from(bytes);
  const copy = borrowRoom(bytes.length);
  copy.set(bytes);
  return copy;
}

/** Room for bytes that are about to come, with whatever was there before. */
export function borrowRoom(length: number): Buffer {
  const size = sizes.find((one) => one >= length);
  if (length < smallBytes || size === undefined) return Buffer.allocUnsafeSlow(length);
  const memory = kept.get(size)!.pop() ?? new ArrayBuffer(size);
  lent.set(memory, length);
  return Buffer.from(memory, 0, length);
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
