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
  /** Read ahead while what came before is on its way. */
  #ahead: { offset: number; buffer: Promise<Buffer> } | undefined;

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
    const ahead = this.#ahead?.offset === this.#offset ? this.#ahead : this.#readAt(this.#offset);
    this.#ahead = undefined;
    const buffer = await ahead?.buffer;
    if (!buffer) return [];
    this.#ahead = this.#readAt(this.#offset + buffer.length);
    return this.#parse(buffer);
  }

  #readAt(offset: number): { offset: number; buffer: Promise<Buffer> } | undefined {
    const size = Math.min(readBytes, this.segment.size - offset);
    if (size <= 0) return undefined;
    const space = Buffer.allocUnsafeSlow(size);
    const buffer = this.#file
      .read(space, 0, size, offset)
      .then(({ bytesRead }) => space.subarray(0, bytesRead));
    // Whoever asks for it is told.
    buffer.catch(() => {});
    return { offset, buffer };
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

  async close(): Promise<void> {
    await this.#ahead?.buffer.catch(() => {});
    await this.#file.close();
  }

  /** Records of one stream that follow each other become one piece: what is between them is moved away. */
  #parse(buffer: Buffer): Piece[] {
    const pieces: Piece[] = [];
    let at = 0;
    let filled = 0;
    while (at < buffer.length) {
      if (this.#left === 0) {
        const record = decodeHeader(buffer, at);
        if (!record) break;
        this.#begin(record);
        at += headerBytes;
      }
      const bytes = buffer.subarray(at, at + this.#left);
      if (bytes.length === 0) break;
      const last = pieces.at(-1);
      if (last?.tag === this.#tag) {
        buffer.copyWithin(filled, at, at + bytes.length);
        const joined = buffer.subarray(filled - last.bytes.length, filled + bytes.length);
        pieces[pieces.length - 1] = { ...last, bytes: joined };
        filled += bytes.length;
      } else {
        pieces.push({ tag: this.#tag, from: this.#position, bytes });
        filled = at + bytes.length;
      }
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
