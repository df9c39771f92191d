import type { Duplex } from "node:stream";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  Change,
  Entries,
  Exited,
  FileEntry,
  GuestHello,
  ListeningPort,
  Sealed,
  SealSchema,
  StartSchema,
  UsageReport,
} from "@caisson/contract/link";

export type SealInit = MessageInitShape<typeof SealSchema>;
export type StartInit = MessageInitShape<typeof StartSchema>;

/** Where a process's output goes. Implemented by the engine's process log. */
export interface OutputSink {
  /** How far the output is stored; the guest sends from here after a cut. Covers a piece by the time
   * its `write` resolves, and never passes one whose `write` was rejected. */
  readonly position: number;
  /** Stores a piece; resolves when it is in the file. Called in order, without waiting in between
   * beyond the link's window. The bytes are only lent: what is not stored when this returns must be
   * copied. `tag` is 1 for stdout, 2 for stderr. When it rejects, so must the ones after it: the link
   * pauses and sends again from `position`. */
  write(tag: 1 | 2, bytes: Uint8Array): Promise<void>;
  /** The process has exited and everything it wrote is stored. Told once, possibly before `start` resolves. */
  exited(exit: Exited): void;
}

/** A connection that a program inside has opened. Who has it must destroy or finish its stream. */
export interface GuestConnection {
  /** `proxy`: the stream speaks HTTP proxying or SOCKS5; `transparent`: it speaks whatever the program speaks. */
  kind: "proxy" | "transparent";
  /** Of a transparent one: the name behind the synthetic address, or the literal address. Otherwise empty. */
  name: string;
  /** Of a transparent one; otherwise 0. */
  port: number;
  /** With back-pressure and half-close; `destroy` resets it inside. Errors that nobody listens for are dropped. */
  stream: Duplex;
}

/** A guest behind its link, as the engine sees it. Implemented in this folder. */
export interface Guest {
  /** What the guest said when the link was opened. */
  readonly hello: GuestHello;
  /** Resolves when the link is lost for good or the guest broke the rules; never rejects. */
  readonly lost: Promise<Error>;
  /** Closes the wall. Calls are sent in the order they are made: `start` may follow without waiting. */
  seal(seal: SealInit): Promise<Sealed>;
  /** Tells a copy of a sandbox that was closed under another id its own; before the first `start`. */
  renew(sandbox: string): Promise<void>;
  /** A stream number for `start` that was never used in this sandbox. */
  nextStream(): number;
  /** Starts a command on a stream from `nextStream`; resolves when it runs. Rejects with COMMAND_NOT_FOUND and
   * the like. A cut in between is bridged: it runs once or not at all. */
  start(start: StartInit, sink: OutputSink): Promise<{ pid: number }>;
  /** Gives a process of `hello` a sink that was not given when the link was opened. Opens the link again. */
  resume(stream: number, sink: OutputSink): void;
  /** Writes standard input; resolves when the guest has taken the bytes. */
  writeStdin(stream: number, bytes: Uint8Array): Promise<void>;
  endStdin(stream: number): void;
  signal(stream: number, signal: number, tree: boolean): Promise<void>;
  resize(stream: number, columns: number, rows: number): Promise<void>;
  /** Everything about this process is stored, or nobody wants it. */
  forget(stream: number): void;
  usage(): Promise<UsageReport>;
  /** Resolves with the number of processes alive inside. */
  ping(): Promise<number>;
  /** Asks the guest to end; the link is not opened again. */
  shutdown(): Promise<void>;
  /** Takes the connections that programs inside open. Without a handler they are reset. A cut link resets them too. */
  onConnection(handler: (connection: GuestConnection) => void): void;
  /** Opens a connection to a port inside, on loopback. Rejects with PORT_CLOSED when nothing listens there. */
  connect(port: number, signal: AbortSignal): Promise<Duplex>;
  /** The TCP ports that programs inside listen on. */
  ports(): Promise<ListeningPort[]>;
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
    /** `anyLinks`: links may lead anywhere; they are never followed. */
    limits: { maxBytes: bigint; maxFiles: bigint; anyLinks?: boolean },
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<{ files: bigint; bytes: bigint }>;
  /** `only`: these names below the directory, each by itself; what is not there is left out. */
  pack(path: string, signal: AbortSignal, only?: Uint8Array[]): Promise<AsyncIterable<Uint8Array>>;
}
