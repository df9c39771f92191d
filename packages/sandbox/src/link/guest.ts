import type {
  Entries,
  Change,
  Exited,
  FileEntry,
  GuestHello,
  Seal,
  Sealed,
  Start,
  UsageReport,
} from "@caisson/contract/link";
import type { MessageInitShape } from "@bufbuild/protobuf";

/** Where a process's output goes. Implemented by the engine's process log. */
export interface OutputSink {
  /** How far the output is stored; the guest sends from here after a cut. */
  readonly position: number;
  /** Stores a piece; resolves when it is in the file. Called in order, without waiting in between
   * beyond the link's window. `tag` is 1 for stdout, 2 for stderr. */
  write(tag: 1 | 2, bytes: Uint8Array): Promise<void>;
  /** The process has exited and everything it wrote has been given to `write`. */
  exited(exit: Exited): void;
}

/** A guest behind its link, as the engine sees it. Implemented in this folder. */
export interface Guest {
  /** What the guest said when the link was opened. */
  readonly hello: GuestHello;
  /** Resolves when the link is lost for good or the guest broke the rules; never rejects. */
  readonly lost: Promise<Error>;
  seal(seal: MessageInitShape<typeof import("@caisson/contract/link").SealSchema>): Promise<Sealed>;
  /** Starts a command; resolves when it runs. Rejects with COMMAND_NOT_FOUND and the like. */
  start(
    start: MessageInitShape<typeof import("@caisson/contract/link").StartSchema>,
    sink: OutputSink,
  ): Promise<{ pid: number }>;
  /** Gives a process that runs already a sink, after a restart of the daemon. */
  resume(stream: number, sink: OutputSink): void;
  /** Writes standard input; resolves when the guest has taken the bytes. */
  writeStdin(stream: number, bytes: Uint8Array): Promise<void>;
  endStdin(stream: number): void;
  signal(stream: number, signal: number, tree: boolean): Promise<void>;
  resize(stream: number, columns: number, rows: number): Promise<void>;
  /** Everything about this process is stored. */
  forget(stream: number): void;
  usage(): Promise<UsageReport>;
  ping(): Promise<number>;
  shutdown(): Promise<void>;
  readonly files: GuestFiles;
  /** Cuts the link without ending the guest. */
  close(): void;
}

/** The file calls. Paths are absolute and already checked. */
export interface GuestFiles {
  stat(path: string, follow: boolean, signal: AbortSignal): Promise<FileEntry>;
  read(
    path: string,
    offset: bigint,
    length: bigint,
    signal: AbortSignal,
  ): Promise<{ entry: FileEntry; content: AsyncIterable<Uint8Array> }>;
  write(
    options: { path: string; mode: number; parents: boolean; ifMatch: string; maxBytes: bigint },
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<FileEntry>;
  list(path: string, recursive: boolean, signal: AbortSignal): AsyncIterable<Entries>;
  mkdir(path: string, parents: boolean, mode: number, signal: AbortSignal): Promise<FileEntry>;
  move(from: string, to: string, overwrite: boolean, signal: AbortSignal): Promise<FileEntry>;
  remove(path: string, recursive: boolean, signal: AbortSignal): Promise<void>;
  /** Yields once with nothing when the watch is set, then changes. */
  watch(path: string, recursive: boolean, signal: AbortSignal): AsyncIterable<Change | undefined>;
  unpack(
    path: string,
    limits: { maxBytes: bigint; maxFiles: bigint },
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<{ files: bigint; bytes: bigint }>;
  pack(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

export type { Seal, Start };
