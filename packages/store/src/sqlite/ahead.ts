import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import type { PreparedEvent } from "./log.ts";
import type { PreparedChange } from "./state.ts";

/** Commits as they were spelled, on their way into the database. */
export interface NotedCommit {
  events: PreparedEvent[];
  changes: PreparedChange[];
}

interface Note {
  number: number;
  /** Of the host: after a reboot the database itself may have lost what came before. */
  boot: string;
  commits: NotedCommit[];
}

/** Where the number of the last note that the database has is kept, in the transaction that applied it. */
const applied = { kind: "ahead", key: "applied" } as const;

/** Cutting a file may wait for the disk, so that many notes are cut off together. */
const keptBytes = 1024 * 1024;

/**
 * A file beside the database into which commits that must survive the daemon's death at once are written by one short
 * write; their transaction, which takes many times as long, is made when nobody waits. Notes that were applied stay until the file has grown.
 */
export class AheadFile {
  readonly #fd: number;
  readonly #boot: string;
  #number: number;
  #bytes: number;

  private constructor(fd: number, boot: string, number: number) {
    this.#fd = fd;
    this.#bytes = fstatSync(fd).size;
    this.#boot = boot;
    this.#number = number;
  }

  /** Opens it and returns the commits that the database lacks, in order; `appliedNumber` is what it has. */
  static open(file: string, appliedNumber: number): { ahead: AheadFile; missing: NotedCommit[] } {
    const boot = bootId();
    const notes = readNotes(file).filter((note) => note.boot === boot && note.number > appliedNumber);
    const ahead = new AheadFile(openSync(file, "a", 0o600), boot, notes.at(-1)?.number ?? appliedNumber);
    return { ahead, missing: notes.flatMap(({ commits }) => commits) };
  }

  /** Throws when it cannot be written. */
  note(commits: NotedCommit[]): void {
    const note: Note = { number: this.#number + 1, boot: this.#boot, commits };
    const line = Buffer.from(`${JSON.stringify(note)}\n`);
    this.#number++;
    this.#bytes += line.length;
    if (writeSync(this.#fd, line) !== line.length) throw new Error("the disk took a part of a note");
  }

  /** The change by which a transaction says that it has applied every note so far. */
  appliedChange(): PreparedChange {
    return { ...applied, json: String(this.#number) };
  }

  /** Everything noted is in the database, or was refused: cuts the file if it has grown. */
  clear(atBytes = keptBytes): void {
    if (this.#bytes <= atBytes) return;
    ftruncateSync(this.#fd);
    this.#bytes = 0;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

export const appliedKey = [applied.kind, applied.key] as const;

/** A note that was torn, and what stands behind it, was never acted upon. */
function readNotes(file: string): Note[] {
  const notes: Note[] = [];
  for (const line of textOf(file).split("\n").slice(0, -1)) {
    try {
      notes.push(JSON.parse(line) as Note);
    } catch {
      break;
    }
  }
  return notes;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
