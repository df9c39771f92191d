import { CaissonError } from "@caisson/client";

export const blockBytes = 512;

export type EntryType = "file" | "directory" | "symlink" | "hardlink" | "other";

export interface Entry {
  name: string;
  type: EntryType;
  size: number;
  /** Permission bits. */
  mode: number;
  /** Seconds since the epoch. */
  modified: number;
  target: string;
}

const types: Record<string, EntryType> = {
  "0": "file",
  "\0": "file",
  "1": "hardlink",
  "2": "symlink",
  "5": "directory",
};
const encoder = new TextEncoder();

export function hostile(message: string): CaissonError {
  return new CaissonError("HOSTILE_ARCHIVE", message);
}

/** A block as an entry and its type's own letter; undefined for the zeros at the end. */
export function parseHeader(block: Buffer): { entry: Entry; letter: string } | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  const sum = block.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0);
  if (number(block, 148, 8) !== sum) throw hostile("the archive is damaged: a checksum does not fit");
  const letter = String.fromCharCode(block[156]!);
  const prefix = block.toString("latin1", 257, 262) === "ustar" ? text(block, 345, 155) : "";
  const name = text(block, 0, 100);
  return {
    letter,
    entry: {
      name: prefix ? `${prefix}/${name}` : name,
      type: types[letter] ?? "other",
      size: number(block, 124, 12),
      mode: number(block, 100, 8) & 0o777,
      modified: number(block, 136, 12),
      target: text(block, 157, 100),
    },
  };
}

function text(block: Buffer, at: number, length: number): string {
  const end = block.indexOf(0, at);
  return block.toString("utf8", at, end === -1 || end > at + length ? at + length : end);
}

/** Octal digits, or GNU's base-256 for what is larger. */
function number(block: Buffer, at: number, length: number): number {
  if (block[at]! & 0x80) {
    let value = block[at]! & 0x7f;
    for (let index = at + 1; index < at + length; index++) value = value * 256 + block[index]!;
    if (!Number.isSafeInteger(value)) throw hostile("the archive is damaged: a number is too large");
    return value;
  }
  const digits = text(block, at, length).trim();
  if (digits === "") return 0;
  if (!/^[0-7]+$/.test(digits)) throw hostile("the archive is damaged: a number cannot be read");
  return Number.parseInt(digits, 8);
}

/** An entry's header blocks: one, and a pax record before it where a name or size does not fit. */
export function formatHeader(entry: Entry): Buffer {
  const records: [string, string][] = [];
  if (encoder.encode(entry.name).length > 100) records.push(["path", entry.name]);
  if (encoder.encode(entry.target).length > 100) records.push(["linkpath", entry.target]);
  if (entry.size >= 8 ** 11) records.push(["size", String(entry.size)]);
  const plain = block(entry);
  if (records.length === 0) return plain;
  const content = Buffer.from(records.map(([key, value]) => paxRecord(key, value)).join(""));
  const pax = block({ ...entry, name: "pax", target: "", size: content.length, mode: 0o644 }, "x");
  return Buffer.concat([pax, content, padding(content.length), plain]);
}

/** What fills a content's last block. */
export function padding(size: number): Buffer {
  return Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes);
}

function block(entry: Entry, letter = letterOf(entry.type)): Buffer {
  const bytes = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, length: number) =>
    bytes.write(
      `${Math.min(value, 8 ** (length - 1) - 1)
        .toString(8)
        .padStart(length - 1, "0")}\0`,
      at,
      "latin1",
    );
  encoder
    .encode(entry.name)
    .subarray(0, 100)
    .forEach((byte, index) => {
      bytes[index] = byte;
    });
  octal(entry.mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(entry.size >= 8 ** 11 ? 0 : entry.size, 124, 12);
  octal(Math.max(0, Math.floor(entry.modified)), 136, 12);
  bytes.fill(32, 148, 156);
  bytes.write(letter, 156, "latin1");
  encoder
    .encode(entry.target)
    .subarray(0, 100)
    .forEach((byte, index) => {
      bytes[157 + index] = byte;
    });
  bytes.write("ustar\x0000", 257, "latin1");
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}

function letterOf(type: EntryType): string {
  return type === "directory" ? "5" : type === "symlink" ? "2" : "0";
}

/** `LENGTH key=value\n`, where the length counts itself. */
function paxRecord(key: string, value: string): string {
  const rest = encoder.encode(` ${key}=${value}\n`).length;
  let length = rest + 1;
  while (String(length).length + rest !== length) length = String(length).length + rest;
  return `${length} ${key}=${value}\n`;
}

export function parsePax(content: Buffer): Map<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(32, at);
    const length = Number(content.toString("latin1", at, space));
    const end = at + length;
    if (
      space === -1 ||
      !Number.isInteger(length) ||
      length <= 0 ||
      end > content.length ||
      content[end - 1] !== 10
    ) {
      throw hostile("the archive is damaged: a long name cannot be read");
    }
    const record = content.toString("utf8", space + 1, end - 1);
    const equals = record.indexOf("=");
    if (equals < 1) throw hostile("the archive is damaged: a long name cannot be read");
    records.set(record.slice(0, equals), record.slice(equals + 1));
    at = end;
  }
  return records;
}
