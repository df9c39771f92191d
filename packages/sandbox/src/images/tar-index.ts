// Where the members of a tar archive are in its file. Only what archives of images need: files and links among them.
import type { FileHandle } from "node:fs/promises";
import { wrong } from "./config.ts";

export interface Part {
  offset: number;
  size: number;
}

const block = 512;
const maxMembers = 10_000;
const maxExtra = 64 * 1024;

/** Files by name; a link counts as the file that it leads to. */
export async function indexArchive(file: FileHandle): Promise<Map<string, Part>> {
  const parts = new Map<string, Part>();
  const links = new Map<string, string>();
  const { size: end } = await file.stat();
  let longName: string | undefined;
  let members = 0;
  for (let at = 0; at + block <= end; ) {
    const header = await readAt(file, at, block);
    at += block;
    if (header.every((byte) => byte === 0)) break;
    if (++members > maxMembers) throw wrong("it has too many members");
    const { name, kind, size, target } = readHeader(header);
    if (at + size > end) throw wrong("it is cut off");
    if (kind === "x" || kind === "L") {
      if (size > maxExtra) throw wrong("a member's name is too long");
      const extra = await readAt(file, at, size);
      longName = kind === "L" ? textOf(extra) : (paxPath(extra) ?? longName);
    } else {
      const path = clean(longName ?? name);
      longName = undefined;
      if (kind === "0" || kind === "\0") parts.set(path, { offset: at, size });
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

function paxPath(lines: Buffer): string | undefined {
  for (let at = 0; at < lines.length; ) {
    const space = lines.indexOf(0x20, at);
    const length = space < 0 ? Number.NaN : Number(lines.toString("latin1", at, space));
    if (!Number.isInteger(length) || length <= space - at || at + length > lines.length)
      throw wrong("an extended header is malformed");
    const line = lines.toString("utf8", space + 1, at + length - 1);
    if (line.startsWith("path=")) return line.slice(5);
    at += length;
  }
  return undefined;
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
