import type { Exited } from "@caisson/contract/link";
import type { OutputSink } from "../../link/guest.ts";
import { SegmentReader } from "./file-reader.ts";
import { after, type MemoryBudget, RecentOutput } from "./memory.ts";
import { endOf, type Piece, type Tag } from "./piece.ts";
import { Readers } from "./readers.ts";
import { Segments } from "./segments.ts";

/** Output of a process that has written no more than this is kept with its record, without a file. */
const inlineBytes = 8 * 1024;
const inlinePieces = 64;
/** Every one writes all of it again. */
const inlineWrites = 8;
/** Written at once at most. */
const appendBytes = 1024 * 1024;
/** Stored output that readers may still find in memory. */
const tailBytes = 1024 * 1024;
const retryMs = 500;

export interface ProcessLogOptions {
  dir: string;
  /** Bytes on disk at most; beyond it the oldest goes. */
  keepBytes: number;
  budget: MemoryBudget;
  /** Keeps the whole output so far with the process's record, so that it survives the daemon's death
   * when this returns. False: it cannot now. */
  keepInline(pieces: Piece[]): boolean;
  /** What `keepInline` was given last. */
  loadInline(): Piece[];
  /** The process has exited and all its output is stored; `inline` says where. */
  onExit(exit: Exited, inline: boolean): void;
  /** Storing does not work at the moment (and is being tried again), or works again. */
  onTrouble(error: unknown | undefined): void;
}

/** What a reader gets: output, or a number of bytes that are no longer kept before `position`. */
export type LogItem = Piece | { missing: number; position: number };

/** A process's output, from the link to files, and from there to any number of readers. */
export class ProcessLog implements OutputSink {
  readonly #options: ProcessLogOptions;
  readonly #segments: Segments;
  readonly #recent: RecentOutput;
  readonly #readers = new Readers();
  /** Everything before it survives the daemon's death. */
  #stored: number;
  #firstKept: number;
  #waiting: { end: number; resolve(): void }[] = [];
  #storing: Promise<void> | undefined;
  #busy = false;
  #inFiles: boolean;
  #inlineWrites = 0;
  #inlineScheduled = false;
  #over = false;
  #closed = false;

  private constructor(options: ProcessLogOptions, segments: Segments) {
    this.#options = options;
    this.#segments = segments;
    this.#inFiles = segments.list.length > 0;
    this.#firstKept = segments.list[0]?.from ?? 0;
    this.#stored = segments.list.at(-1)?.end ?? 0;
    this.#recent = new RecentOutput(options.budget, this.#stored);
  }

  static fresh(options: ProcessLogOptions): ProcessLog {
    return new ProcessLog(options, Segments.fresh(options.dir, segmentBytes(options)));
  }

  /** Of a process that an earlier daemon started, or that has exited. */
  static recover(options: ProcessLogOptions): ProcessLog {
    const log = new ProcessLog(options, Segments.recover(options.dir, segmentBytes(options)));
    const inline = options.loadInline();
    const kept = inline.length > 0 ? endOf(inline.at(-1)!) : 0;
    // Files take over once they hold everything; a daemon that died before that left them incomplete.
    if (log.#stored >= kept) return log;
    const fresh = ProcessLog.fresh(options);
    for (const piece of inline) fresh.#recent.push(piece.tag, piece.bytes);
    fresh.#stored = kept;
    return fresh;
  }

  /** How far the output is stored. */
  get position(): number {
    return this.#stored;
  }

  /** Output bytes so far, stored or not. */
  get end(): number {
    return this.#recent.end;
  }

  get firstKept(): number {
    return this.#firstKept;
  }

  write(tag: Tag, bytes: Uint8Array): Promise<void> {
    this.#recent.push(tag, bytes);
    this.#readers.wake();
    if (this.#fitsInline()) this.#scheduleInline();
    else this.#store();
    return new Promise((resolve) => this.#waiting.push({ end: this.#recent.end, resolve }));
  }

  exited(exit: Exited): void {
    this.#over = true;
    this.#options.onExit(exit, this.inline);
    this.#readers.wake();
    this.#evict();
  }

  /** The process is over without an exit of its own, or was over before this daemon began. */
  finish(): void {
    this.#over = true;
    this.#readers.wake();
    this.#evict();
  }

  /** The output is kept with the process's record, not in files. */
  get inline(): boolean {
    return !this.#inFiles;
  }

  /** Lets go of files and memory; what is on disk stays. */
  async close(): Promise<void> {
    this.#over = true;
    this.#closed = true;
    this.#readers.wake();
    await this.#storing;
    await this.#segments.close();
  }

  /** Output after a position: what is kept, then what comes. */
  async *read(
    from: number,
    options: { follow: boolean; hold: boolean; signal: AbortSignal },
  ): AsyncGenerator<LogItem> {
    const reader = this.#readers.add(from, options.hold);
    let file: SegmentReader | undefined;
    try {
      while (!options.signal.aborted) {
        if (reader.position < this.#firstKept) {
          const missing = this.#firstKept - reader.position;
          reader.position = this.#firstKept;
          yield { missing, position: reader.position };
          continue;
        }
        if (reader.position >= this.end) {
          if (this.#over || !options.follow) return;
          await this.#readers.changed(options.signal);
          continue;
        }
        let pieces: Piece[];
        if (reader.position >= this.#recent.start) {
          // Taken before anything is waited for: it may be gone from memory afterwards.
          // What is in memory is written over once it is stored: a reader gets a copy.
          pieces = joined(this.#recent.from(reader.position, joinedBytes), true);
          await file?.close();
          file = undefined;
        } else if (this.inline) {
          pieces = this.#options.loadInline().filter((piece) => endOf(piece) > reader.position);
          if (pieces.length === 0) return;
        } else {
          file = await this.#fileAt(reader.position, file);
          pieces = file ? joined(await file.next(), false) : [];
          // Somebody has removed the output of an ended sandbox.
          if (!file && this.#closed) return;
          // Retention was faster; the next turn sees the gap.
          if (pieces.length === 0 && reader.position >= this.#firstKept)
            await this.#readers.changed(options.signal, 50);
        }
        for (const piece of pieces) {
          const rest = after(piece, reader.position);
          this.#readers.move(reader, endOf(piece));
          yield rest;
          if (options.signal.aborted) return;
        }
      }
    } finally {
      this.#readers.remove(reader);
      await file?.close();
      this.#evict();
    }
  }

  #fitsInline(): boolean {
    return (
      this.inline &&
      !this.#busy &&
      this.end <= inlineBytes &&
      this.#recent.count <= inlinePieces &&
      this.#inlineWrites < inlineWrites
    );
  }

  /** What comes in one turn of the event loop is kept together. */
  #scheduleInline(): void {
    if (this.#inlineScheduled) return;
    this.#inlineScheduled = true;
    setImmediate(() => {
      this.#inlineScheduled = false;
      if (this.#closed || this.#stored === this.end) return;
      if (!this.#fitsInline() || !this.#options.keepInline(this.#recent.from(0, inlineBytes))) {
        this.#store();
        return;
      }
      this.#inlineWrites++;
      this.#stored = this.end;
      this.#acknowledge();
    });
  }

  #store(): void {
    if (this.#busy) return;
    this.#busy = true;
    this.#storing = this.#storeAll();
  }

  async #storeAll(): Promise<void> {
    let troubled = false;
    while (this.#stored < this.end && !this.#closed) {
      // Files begin at 0 although the beginning may be kept inline already.
      // No more than fits a file: what is dropped at once stays a small part of what is kept.
      const most = Math.min(appendBytes, segmentBytes(this.#options));
      const pieces = atMost(this.#recent.from(this.inline ? 0 : this.#stored, most), most);
      try {
        await this.#segments.append(pieces);
      } catch (error) {
        // Nothing is acknowledged meanwhile, so the process waits instead of losing output.
        if (!troubled) this.#options.onTrouble(error);
        troubled = true;
        await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
        continue;
      }
      if (troubled) this.#options.onTrouble(undefined);
      troubled = false;
      this.#inFiles = true;
      this.#stored = endOf(pieces.at(-1)!);
      await this.#dropOldest();
      this.#acknowledge();
      this.#evict();
    }
    // In the same turn as the last look at what there is, so that no write is overlooked.
    this.#busy = false;
  }

  #acknowledge(): void {
    let done = 0;
    while (done < this.#waiting.length && this.#waiting[done]!.end <= this.#stored)
      this.#waiting[done++]!.resolve();
    if (done > 0) this.#waiting.splice(0, done);
  }

  async #dropOldest(): Promise<void> {
    while (this.#segments.size > this.#options.keepBytes && this.#segments.list.length > 1) {
      const oldest = this.#segments.list[0]!;
      const heldMs = this.#readers.heldFor(oldest.end);
      if (heldMs > 0 && !this.#closed) {
        await this.#readers.changed(undefined, heldMs);
        continue;
      }
      this.#firstKept = oldest.end;
      await this.#segments.dropOldest();
    }
  }

  /** Lets go of what is stored, sooner when nobody reads. What is inline may still have to go to a file. */
  #evict(): void {
    if (this.inline && (!this.#over || this.#busy)) return;
    const wanted = this.#readers.any && !this.#options.budget.exceeded ? tailBytes : 0;
    while (this.#recent.cost > wanted) {
      const oldest = this.#recent.oldest();
      if (!oldest || endOf(oldest) > this.#stored) return;
      this.#recent.drop();
    }
  }

  async #fileAt(position: number, file: SegmentReader | undefined): Promise<SegmentReader | undefined> {
    if (file && file.position === position && position < file.segment.end) return file;
    await file?.close();
    const segment = this.#segments.list.find((candidate) => candidate.end > position);
    const opened = segment && (await SegmentReader.open(segment));
    await opened?.skipTo(position);
    return opened;
  }
}

/** Small pieces given to a reader at once are joined up to this size; large ones are not copied. */
const joinedBytes = 256 * 1024;

function joined(pieces: Piece[], copy: boolean): Piece[] {
  const result: Piece[] = [];
  for (let index = 0; index < pieces.length; ) {
    const run = [pieces[index]!];
    let bytes = run[0]!.bytes.length;
    for (let next = pieces[index + 1]; next?.tag === run[0]!.tag; next = pieces[index + run.length]) {
      bytes += next.bytes.length;
      if (bytes > joinedBytes) break;
      run.push(next);
    }
    index += run.length;
    const first = run[0]!;
    result.push(
      run.length === 1 && !copy ? first : { ...first, bytes: Buffer.concat(run.map((piece) => piece.bytes)) },
    );
  }
  return result;
}

/** The same pieces, the last one cut where they would exceed so many bytes. */
function atMost(pieces: Piece[], bytes: number): Piece[] {
  const last = pieces.at(-1)!;
  const excess = endOf(last) - pieces[0]!.from - bytes;
  if (excess <= 0) return pieces;
  return [...pieces.slice(0, -1), { ...last, bytes: last.bytes.subarray(0, last.bytes.length - excess) }];
}

/** Retention works by whole files, so there are always a few. */
function segmentBytes(options: ProcessLogOptions): number {
  return Math.min(8 * 1024 * 1024, Math.max(4096, Math.floor(options.keepBytes / 8)));
}
