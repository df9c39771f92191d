// Where the members of a tar archive are in its file. Only what archives of images need: files and links among them.
import type { FileHandle } from "node:fs/promises";
import { wrong } from "./config.ts";
import { noteSparse, type Piece, piecesOfExtended, piecesOfHeader, type SaidSparse } from "./tar-sparse.ts";

export interface Part {
  size: number;
  /** In order. */
  pieces: readonly Piece[];
}

/** What stands before a member, about it. */
interface Said {
  path?: string;
  size?: number;
  sparse?: SaidSparse;
}

const block = 512;
const maxMembers = 10_000;
const maxExtra = 64 * 1024;

/** Files by name; a link counts as the file that it leads to. */
export async function indexArchive(file: FileHandle): Promise<Map<string, Part>> {
  const parts = new Map<string, Part>();
  const links = new Map<string, string>();
  const { size: end } = await file.stat();
  const read = (offset: number, size: number) => readAt(file, offset, size);
  let said: Said = {};
  let members = 0;
  for (let at = 0; at + block <= end; ) {
    const header = await readAt(file, at, block);
    at += block;
    if (header.every((byte) => byte === 0)) break;
    if (++members > maxMembers) throw wrong("it has too many members");
    const { name, kind, size: ownSize, target } = readHeader(header);
    const isExtra = kind === "x" || kind === "L";
    const size = isExtra ? ownSize : (said.size ?? ownSize);
    if (at + size > end) throw wrong("it is cut off");
    if (isExtra) {
      if (size > maxExtra) throw wrong("a member's name is too long");
      const extra = await readAt(file, at, size);
      said = kind === "L" ? { ...said, path: textOf(extra) } : { ...said, ...readExtended(extra) };
    } else {
      const { sparse } = said;
      const path = clean(sparse?.name ?? said.path ?? name);
      said = {};
      if (kind === "S") {
        const { blocks, ...part } = await piecesOfHeader(header, at, size, read, octal);
        parts.set(path, part);
        at += blocks * block;
      } else if (sparse) parts.set(path, await piecesOfExtended(sparse, at, size, read));
      else if (kind === "0" || kind === "\0") parts.set(path, wholePart(at, size));
      else if (kind === "1") links.set(path, clean(target));
      else if (kind === "2") links.set(path, resolve(path, target));
    }
    at += Math.ceil(size / block) * block;
  }
  for (const [path, target] of links) {
    const found = parts.get(target);
    if (found && !parts.has(path)) parts.set(path, found);
  }
  return parts;
}

/** One without holes. */
export function wholePart(offset: number, size: number): Part {
  return { size, pieces: [{ at: 0, offset, size }] };
}

function readHeader(header: Buffer): { name: string; kind: string; size: number; target: string } {
  if (!header.subarray(257, 262).equals(Buffer.from("ustar"))) throw wrong("it is not a tar archive");
  const sum = header.reduce((all, byte, index) => all + (index >= 148 && index < 156 ? 32 : byte), 0);
  if (octal(header.subarray(148, 156)) !== sum) throw wrong("a header's checksum is wrong");
  const prefix = header[263] === 0x30 ? textOf(header.subarray(345, 500)) : "";
  const name = textOf(header.subarray(0, 100));
  return {
    name: prefix ? `${prefix}/${name}` : name,
    kind: String.fromCharCode(header[156]!),
    size: octal(header.subarray(124, 136)),
    target: textOf(header.subarray(157, 257)),
  };
}

function octal(field: Buffer): number {
  if (field[0] === 0x80) {
    const value = field.subarray(-8).readBigUInt64BE();
    if (value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
  }
  const digits = /^ *([0-7]*)[ \0]*$/.exec(field.toString("latin1"))?.[1];
  if (digits === undefined) throw wrong("a number in a header is none");
  return Number.parseInt(digits || "0", 8);
}

function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? field.length : end);
}

function readExtended(lines: Buffer): Said {
  const said: Said = {};
  for (let at = 0; at < lines.length; ) {
    const space = lines.indexOf(0x20, at);
    const length = space < 0 ? Number.NaN : Number(lines.toString("latin1", at, space));
    if (!Number.isInteger(length) || length <= space - at || at + length > lines.length)
      throw wrong("an extended header is malformed");
    const line = lines.toString("utf8", space + 1, at + length - 1);
    if (line.startsWith("path=")) said.path = line.slice(5);
    if (line.startsWith("GNU.sparse.")) {
      said.sparse ??= { map: [] };
      const [, key = "", value = ""] = /^([^=]*)=(.*)$/s.exec(line) ?? [];
      if (!noteSparse(said.sparse, key, value)) throw wrong("a member has holes of a form that is not known");
    }
    if (line.startsWith("size=")) {
      said.size = /^size=\d{1,15}$/.test(line) ? Number(line.slice(5)) : Number.NaN;
      if (Number.isNaN(said.size)) throw wrong("an extended header is malformed");
    }
    at += length;
  }
  return said;
}

function clean(path: string): string {
  return path
    .split("/")
    .filter((segment) => segment !== "" && segment !== ".")
    .join("/");
}

function resolve(path: string, target: string): string {
  const segments = target.startsWith("/") ? [] : path.split("/").slice(0, -1);
  for (const segment of target.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return segments.join("/");
}

async function readAt(file: FileHandle, offset: number, size: number): Promise<Buffer> {
  const buffer = Buffer.alloc(size);
  let have = 0;
  while (have < size) {
    const { bytesRead } = await file.read(buffer, have, size - have, offset + have);
    if (bytesRead === 0) throw wrong("it is cut off");
    have += bytesRead;
  }
  return buffer;
}
