const period = 65_521;
const block = makeBlock();

/** What a patterned output has from position `from` on. Every position's byte and tag can be told from its number. */
export function pattern(from: number, length: number): Uint8Array {
  const start = from % period;
  return block.subarray(start, start + Math.min(length, block.length - start));
}

/** Output changes between stdout and stderr every `run` bytes. */
export function tagAt(position: number, run: number): 1 | 2 {
  return Math.floor(position / run) % 2 === 0 ? 1 : 2;
}

function makeBlock(): Uint8Array {
  const bytes = new Uint8Array(period * 5);
  for (let i = 0; i < bytes.length; i += 1) {
    const position = i % period;
    bytes[i] = (position * 31 + (position >> 8)) & 0xff;
  }
  return bytes;
}
