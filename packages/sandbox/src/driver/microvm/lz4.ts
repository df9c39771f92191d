/** Each block of the old format holds so much, the last one less. */
const blockBytes = 8 * 1024 * 1024;

/**
 * Unpacks LZ4 in its old frame format, in which Linux kernels are packed: after the magic number, blocks behind their
 * lengths, each on its own.
 *
 * @param size of what comes out; more is refused
 */
export function unpackLegacyLz4(packed: Buffer, size: number): Buffer {
  const output = Buffer.allocUnsafe(size);
  let written = 0;
  for (let at = 4; at + 4 <= packed.length && written < size; ) {
    const length = packed.readUInt32LE(at);
    const block = packed.subarray(at + 4, at + 4 + length);
    if (block.length < length) throw new RangeError("the last block is not whole");
    written = unpackBlock(block, output, written, Math.min(size, written + blockBytes));
    at += 4 + length;
  }
  if (written !== size) throw new RangeError(`${written} bytes came out, not ${size}`);
  return output;
}

/** Literals, then a copy of what came before; again and again. Returns where it ends. */
function unpackBlock(block: Buffer, output: Buffer, start: number, limit: number): number {
  let [at, to] = [0, start];
  const next = (): number => {
    const byte = block[at++];
    if (byte === undefined) throw new RangeError("a block ends too early");
    return byte;
  };
  const lengthOf = (first: number): number => {
    let length = first;
    for (let more = first === 15 ? 255 : 0; more === 255; length += more) more = next();
    return length;
  };
  while (at < block.length) {
    const token = next();
    const literals = lengthOf(token >> 4);
    if (at + literals > block.length || to + literals > limit) throw new RangeError("a block is too long");
    block.copy(output, to, at, at + literals);
    at += literals;
    to += literals;
    if (at === block.length) break;
    const distance = next() | (next() << 8);
    const end = to + lengthOf(token & 15) + 4;
    if (distance === 0 || distance > to - start || end > limit)
      throw new RangeError("a copy is out of bounds");
    // Byte by byte where source and destination overlap: that is how runs are packed.
    if (distance >= end - to) to += output.copy(output, to, to - distance, end - distance);
    else for (; to < end; to++) output[to] = output[to - distance] as number;
  }
  return to;
}
