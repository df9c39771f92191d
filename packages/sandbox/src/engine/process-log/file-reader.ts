import { type FileHandle, open } from "node:fs/promises";
import type { Piece, Tag } from "./piece.ts";
import { decodeHeader, headerBytes } from "./record.ts";
import type { Segment } from "./segments.ts";

const readBytes = 256 * 1024;
const skipBytes = 64 * 1024;

/** Reads one segment file forwards. It may be unlinked meanwhile; what is open stays readable. */
export class SegmentReader {
  readonly segment: Segment;
  readonly #file: FileHandle;
  /** Where the next byte is in the file, and its position in the output. */
  #offset = 0;
  #position: number;
  /** Of the record that is being read. */
  #tag: Tag = 1;
  #left = 0;

  private constructor(segment: Segment, file: FileHandle) {
    this.segment = segment;
    this.#file = file;
    this.#position = segment.from;
  }

  /** Undefined when retention has just dropped it. */
  static async open(segment: Segment): Promise<SegmentReader | undefined> {
    try {
      return new SegmentReader(segment, await open(segment.path, "r"));
    } catch {
      return undefined;
    }
  }

  get position(): number {
    return this.#position;
  }

  /** Pieces that follow, none at the end of what is written. */
  async next(): Promise<Piece[]> {
    const size = Math.min(readBytes, this.segment.size - this.#offset);
    if (size <= 0) return [];
    const buffer = Buffer.allocUnsafeSlow(size);
    const { bytesRead } = await this.#file.read(buffer, 0, size, this.#offset);
    return this.#parse(buffer.subarray(0, bytesRead));
  }

  /** Goes forward to a position without giving what lies before it. */
  async skipTo(position: number): Promise<void> {
    const buffer = Buffer.allocUnsafeSlow(Math.min(skipBytes, this.segment.size));
    while (this.#position < position) {
      const start = this.#offset;
      const { bytesRead } = await this.#file.read(buffer, 0, buffer.length, start);
      const read = buffer.subarray(0, bytesRead);
      while (this.#position < position) {
        if (this.#left === 0) {
          const record = decodeHeader(read, this.#offset - start);
          if (!record) break;
          this.#begin(record);
        }
        this.#advance(Math.min(this.#left, position - this.#position));
      }
      if (this.#offset === start) return;
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #parse(buffer: Buffer): Piece[] {
    const pieces: Piece[] = [];
    let at = 0;
    while (at < buffer.length) {
      if (this.#left === 0) {
        const record = decodeHeader(buffer, at);
        if (!record) break;
        this.#begin(record);
        at += headerBytes;
      }
      const bytes = buffer.subarray(at, at + this.#left);
      if (bytes.length === 0) break;
      pieces.push({ tag: this.#tag, from: this.#position, bytes });
      this.#advance(bytes.length);
      at += bytes.length;
    }
    return pieces;
  }

  #begin(record: { tag: Tag; length: number }): void {
    this.#tag = record.tag;
    this.#left = record.length;
    this.#offset += headerBytes;
  }

  #advance(bytes: number): void {
    this.#left -= bytes;
    this.#offset += bytes;
    this.#position += bytes;
  }
}
