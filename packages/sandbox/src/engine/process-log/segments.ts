import { closeSync, fstatSync, openSync, readdirSync, readSync, truncateSync } from "node:fs";
import { type FileHandle, mkdir, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import { endOf, type Piece } from "./piece.ts";
import { decodeHeader, encodeRecords, headerBytes } from "./record.ts";

const lookBytes = 256 * 1024;

/** One file of output. */
export interface Segment {
  /** The position of its first byte of output; also its name. */
  readonly from: number;
  readonly path: string;
  /** The position behind its last byte of output. */
  end: number;
  /** Bytes in the file, records' headers included. */
  size: number;
}

/** A process's output in files: appended at the end, dropped at the beginning. */
export class Segments {
  readonly #dir: string;
  readonly #segmentBytes: number;
  readonly #list: Segment[];
  #open: FileHandle | undefined;
  #made = false;

  private constructor(dir: string, segmentBytes: number, list: Segment[]) {
    this.#dir = dir;
    this.#segmentBytes = segmentBytes;
    this.#list = list;
    this.#made = list.length > 0;
  }

  /** For a process that has written nothing yet. Nothing is made on disk before the first append. */
  static fresh(dir: string, segmentBytes: number): Segments {
    return new Segments(dir, segmentBytes, []);
  }

  /** What an earlier daemon left. A record that was being written when it died is cut off. */
  static recover(dir: string, segmentBytes: number): Segments {
    const list: Segment[] = [];
    for (const name of segmentNames(dir)) {
      const from = Number(name);
      if (list.length > 0 && list.at(-1)!.end !== from) break;
      list.push(recoverSegment(join(dir, name), from));
    }
    return new Segments(dir, segmentBytes, list);
  }

  get list(): readonly Segment[] {
    return this.#list;
  }

  get size(): number {
    return this.#list.reduce((bytes, segment) => bytes + segment.size, 0);
  }

  /** Appends pieces; when it resolves they survive the daemon's death. After a failure the file is as before. */
  async append(pieces: readonly Piece[]): Promise<void> {
    const { segment, file } = await this.#writable(pieces[0]!.from);
    const buffers = encodeRecords(pieces);
    const bytes = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
    try {
      const { bytesWritten } = await file.writev(buffers, segment.size);
      if (bytesWritten < bytes) await file.writev(rest(buffers, bytesWritten), segment.size + bytesWritten);
    } catch (error) {
      await file.truncate(segment.size).catch(() => {});
      throw error;
    }
    segment.size += bytes;
    segment.end = endOf(pieces.at(-1)!);
  }

  /** Drops the oldest file. */
  async dropOldest(): Promise<void> {
    const segment = this.#list.shift()!;
    if (this.#list.length === 0) await this.#closeFile();
    await unlink(segment.path).catch(() => {});
  }

  async close(): Promise<void> {
    await this.#closeFile();
  }

  async #writable(from: number): Promise<{ segment: Segment; file: FileHandle }> {
    const last = this.#list.at(-1);
    if (last && last.size < this.#segmentBytes) {
      this.#open ??= await open(last.path, "r+");
      return { segment: last, file: this.#open };
    }
    await this.#closeFile();
    if (!this.#made) await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    this.#made = true;
    const segment: Segment = { from, path: join(this.#dir, segmentName(from)), end: from, size: 0 };
    this.#open = await open(segment.path, "w", 0o600);
    this.#list.push(segment);
    return { segment, file: this.#open };
  }

  async #closeFile(): Promise<void> {
    const file = this.#open;
    this.#open = undefined;
    await file?.close();
  }
}

/** Sorts by position. */
function segmentName(from: number): string {
  return String(from).padStart(16, "0");
}

function segmentNames(dir: string): string[] {
  try {
    return readdirSync(dir)
      .filter((name) => /^\d{16}$/.test(name))
      .sort();
  } catch {
    return [];
  }
}

function recoverSegment(path: string, from: number): Segment {
  const fd = openSync(path, "r");
  let size = 0;
  let end = from;
  try {
    const bytes = fstatSync(fd).size;
    // Many records at a time: one may be a single byte.
    const space = Buffer.allocUnsafe(Math.min(lookBytes, bytes));
    let looked = { at: 0, bytes: space.subarray(0, 0) };
    for (;;) {
      if (size + headerBytes > looked.at + looked.bytes.length)
        looked = { at: size, bytes: space.subarray(0, readSync(fd, space, 0, space.length, size)) };
      const record = decodeHeader(looked.bytes, size - looked.at);
      // The record counts only if its last byte is there.
      if (!record || size + headerBytes + record.length > bytes) break;
      size += headerBytes + record.length;
      end += record.length;
    }
  } finally {
    closeSync(fd);
  }
  truncateSync(path, size);
  return { from, path, end, size };
}

function rest(buffers: readonly Uint8Array[], skip: number): Uint8Array[] {
  const left: Uint8Array[] = [];
  let offset = skip;
  for (const buffer of buffers) {
    if (offset < buffer.length) left.push(buffer.subarray(Math.max(offset, 0)));
    offset = Math.max(offset - buffer.length, 0);
  }
  return left;
}
