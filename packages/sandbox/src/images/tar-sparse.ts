// Members of a tar archive that have holes, in the four forms that GNU tar writes: where their data is, and where it belongs.
import { wrong } from "./config.ts";

/** Data of a member: `offset` in the archive, `at` in the member. What lies between two is a hole. */
export interface Piece {
  at: number;
  offset: number;
  size: number;
}

const block = 512;
const maxPieces = 100_000;

export type ReadAt = (offset: number, size: number) => Promise<Buffer>;

/** What an extended header said about holes. */
export interface SaidSparse {
  /** `1.0`: the map stands before the data. */
  version?: string;
  name?: string;
  realSize?: number;
  /** Where and how much, in turn. */
  map: number[];
}

/** Notes one line of an extended header; false if it is not about holes. */
export function noteSparse(said: SaidSparse, key: string, value: string): boolean {
  switch (key) {
    case "GNU.sparse.major":
    case "GNU.sparse.minor":
      said.version = (said.version ?? "") + value;
      return true;
    case "GNU.sparse.name":
      said.name = value;
      return true;
    case "GNU.sparse.size":
    case "GNU.sparse.realsize":
      said.realSize = number(value);
      return true;
    case "GNU.sparse.map":
      said.map = value === "" ? [] : value.split(",").map(number);
      return true;
    case "GNU.sparse.offset":
    case "GNU.sparse.numbytes":
      said.map.push(number(value));
      return true;
    case "GNU.sparse.numblocks":
      return true;
    default:
      return false;
  }
}

/** The pieces of a member whose extended header told of holes. Its stored content is `size` bytes at `offset`. */
export async function piecesOfExtended(
  said: SaidSparse,
  offset: number,
  size: number,
  read: ReadAt,
): Promise<{ size: number; pieces: Piece[] }> {
  if (said.realSize === undefined) throw malformed();
  if (said.version !== "10") return laidOut(said.map, said.realSize, offset, size);
  const { map, length } = await readMap(offset, size, read);
  return laidOut(map, said.realSize, offset + length, size - length);
}

/** The same of GNU's older form: the map is in the header and in blocks behind it, which are not part of the content. */
export async function piecesOfHeader(
  header: Buffer,
  offset: number,
  size: number,
  read: ReadAt,
  octal: (field: Buffer) => number,
): Promise<{ size: number; pieces: Piece[]; blocks: number }> {
  const map: number[] = [];
  const note = (fields: Buffer) => {
    for (let at = 0; at + 24 <= fields.length && fields[at] !== 0; at += 24) {
      map.push(octal(fields.subarray(at, at + 12)), octal(fields.subarray(at + 12, at + 24)));
    }
  };
  note(header.subarray(386, 482));
  let blocks = 0;
  for (let more = header[482] !== 0; more; blocks++) {
    if (map.length > 2 * maxPieces) throw malformed();
    const next = await read(offset + blocks * block, block);
    note(next.subarray(0, 504));
    more = next[504] !== 0;
  }
  const realSize = octal(header.subarray(483, 495));
  return { ...laidOut(map, realSize, offset + blocks * block, size), blocks };
}

/** Decimal numbers in lines: how many pieces, then where and how much of each; filled up to a block. */
async function readMap(
  offset: number,
  size: number,
  read: ReadAt,
): Promise<{ map: number[]; length: number }> {
  let text = "";
  for (let length = block; length <= size; length += block) {
    text += (await read(offset + length - block, block)).toString("latin1");
    const lines = text.split("\n");
    if (lines.length < 2) continue;
    const count = number(lines[0]!);
    if (count > maxPieces) throw malformed();
    if (lines.length > 2 * count + 1) return { map: lines.slice(1, 2 * count + 1).map(number), length };
  }
  throw malformed();
}

/** In order, beside each other, and as much as there is. */
function laidOut(
  map: readonly number[],
  realSize: number,
  offset: number,
  size: number,
): { size: number; pieces: Piece[] } {
  const pieces: Piece[] = [];
  let [end, taken] = [0, 0];
  if (map.length % 2 !== 0 || map.length > 2 * maxPieces) throw malformed();
  for (let index = 0; index < map.length; index += 2) {
    const [at, length] = [map[index]!, map[index + 1]!];
    if (at < end || at + length > realSize || taken + length > size) throw malformed();
    if (length > 0) pieces.push({ at, offset: offset + taken, size: length });
    end = at + length;
    taken += length;
  }
  if (taken !== size) throw malformed();
  return { size: realSize, pieces };
}

function number(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw malformed();
  return Number(text);
}

function malformed() {
  return wrong("the holes of a member are told wrongly");
}
