import { Transform, type TransformCallback } from "node:stream";

export interface Replacement {
  from: Buffer;
  to: Buffer;
}

type Found = (replacement: Replacement) => void;

/** Replaces bytes as they pass, also where they lie across pieces; holds back no more than could become one. */
export class Replacing extends Transform {
  readonly #replacements: readonly Replacement[];
  readonly #found: Found;
  #rest: Buffer = Buffer.alloc(0);

  constructor(replacements: readonly Replacement[], found: Found = () => {}) {
    super();
    this.#replacements = replacements;
    this.#found = found;
  }

  override _transform(piece: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    const { out, rest } = replace(bytes, this.#replacements, this.#found, false);
    this.#rest = rest;
    done(null, out);
  }

  override _flush(done: TransformCallback): void {
    done(null, replaceAll(this.#rest, this.#replacements, this.#found));
  }
}

/** All at once. */
export function replaceAll(
  bytes: Buffer,
  replacements: readonly Replacement[],
  found: Found = () => {},
): Buffer {
  return replace(bytes, replacements, found, true).out;
}

function replace(
  bytes: Buffer,
  replacements: readonly Replacement[],
  found: Found,
  last: boolean,
): { out: Buffer; rest: Buffer } {
  const parts: Buffer[] = [];
  let at = 0;
  for (let next = first(bytes, at, replacements); next; next = first(bytes, at, replacements)) {
    parts.push(bytes.subarray(at, next.index), next.replacement.to);
    found(next.replacement);
    at = next.index + next.replacement.from.length;
  }
  const end = bytes.length - (last ? 0 : heldBack(bytes, at, replacements));
  const tail = bytes.subarray(at, end);
  return {
    out: parts.length === 0 ? tail : Buffer.concat([...parts, tail]),
    rest: Buffer.from(bytes.subarray(end)),
  };
}

/** The one that comes first; of several at one place the longest. */
function first(
  bytes: Buffer,
  at: number,
  replacements: readonly Replacement[],
): { index: number; replacement: Replacement } | undefined {
  let found: { index: number; replacement: Replacement } | undefined;
  for (const replacement of replacements) {
    const index = bytes.indexOf(replacement.from, at);
    if (index < 0) continue;
    const longer = index === found?.index && replacement.from.length > found.replacement.from.length;
    if (!found || index < found.index || longer) found = { index, replacement };
  }
  return found;
}

/** Bytes at the end with which one of them could begin. */
function heldBack(bytes: Buffer, at: number, replacements: readonly Replacement[]): number {
  const longest = Math.max(0, ...replacements.map(({ from }) => from.length));
  for (let length = Math.min(longest - 1, bytes.length - at); length > 0; length--) {
    const tail = bytes.subarray(bytes.length - length);
    if (replacements.some(({ from }) => from.length > length && from.subarray(0, length).equals(tail)))
      return length;
  }
  return 0;
}
