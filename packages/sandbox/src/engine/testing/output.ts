import { pattern } from "../../link/testing/pattern.ts";

/** What the fake process `pattern` prints from a position on, however long. */
export function output(from: number, length: number): Buffer {
  const pieces: Uint8Array[] = [];
  for (let at = from; at < from + length; at += pieces.at(-1)!.length)
    pieces.push(pattern(at, from + length - at));
  return Buffer.concat(pieces);
}
