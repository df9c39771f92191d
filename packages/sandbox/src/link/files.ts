import { CaissonError } from "@caisson/contract";
import type { Change, Entries, FileEntry, FileReply } from "@caisson/contract/link";
import type { Connection } from "./connection.ts";
import type { GuestFiles } from "./guest.ts";
import type { Lifeline } from "./lifeline.ts";
import { decodeChange, decodeEntries, type HostMessage } from "./messages.ts";
import type { Processes } from "./processes.ts";
import { Inbound } from "./stream/inbound.ts";
import { sendContent } from "./stream/upload.ts";
import { LinkViolation } from "./violation.ts";

type FileCallInit = Extract<HostMessage, { case: "file" }>["value"]["call"];

/** The file calls over the link. A cut in between rejects them: they are the caller's to repeat. */
export class LinkedFiles implements GuestFiles {
  readonly #lifeline: Lifeline;
  readonly #processes: Processes;

  constructor(lifeline: Lifeline, processes: Processes) {
    this.#lifeline = lifeline;
    this.#processes = processes;
  }

  async stat(path: string, follow: boolean, signal: AbortSignal): Promise<FileEntry> {
    return this.#entry({ case: "stat", value: { path, follow } }, signal);
  }

  async mkdir(path: string, parents: boolean, mode: number, signal: AbortSignal): Promise<FileEntry> {
    return this.#entry({ case: "mkdir", value: { path, parents, mode } }, signal);
  }

  async move(from: string, to: string, overwrite: boolean, signal: AbortSignal): Promise<FileEntry> {
    return this.#entry({ case: "move", value: { from, to, overwrite } }, signal);
  }

  async remove(path: string, recursive: boolean, signal: AbortSignal): Promise<void> {
    await this.#call(await this.#ready(signal), { case: "remove", value: { path, recursive } }, signal);
  }

  async read(path: string, offset: bigint, length: bigint, signal: AbortSignal) {
    const stream = this.#processes.takeStream();
    const { reply, content } = await this.#download(
      { case: "read", value: { stream, path, offset, length } },
      { stream, records: false },
      signal,
    );
    return { entry: entryOf(reply, content), content: map(content, signal, (piece) => piece) };
  }

  async pack(path: string, signal: AbortSignal, only: Uint8Array[] = []): Promise<AsyncIterable<Uint8Array>> {
    const stream = this.#processes.takeStream();
    const call: FileCallInit = { case: "pack", value: { stream, path, only } };
    const { content } = await this.#download(call, { stream, records: false }, signal);
    return map(content, signal, (piece) => piece);
  }

  async *list(path: string, recursive: boolean, signal: AbortSignal): AsyncGenerator<Entries> {
    const stream = this.#processes.takeStream();
    const call: FileCallInit = { case: "list", value: { stream, path, recursive } };
    const { content } = await this.#download(call, { stream, records: true }, signal);
    yield* map(content, signal, (frame) => this.#decoded(decodeEntries, frame));
  }

  async *watch(path: string, recursive: boolean, signal: AbortSignal): AsyncGenerator<Change | undefined> {
    const stream = this.#processes.takeStream();
    const call: FileCallInit = { case: "watch", value: { stream, path, recursive } };
    const { content } = await this.#download(call, { stream, records: true }, signal);
    try {
      yield undefined;
      yield* map(content, signal, (frame) => this.#decoded(decodeChange, frame));
    } finally {
      content.cancel(undefined);
    }
  }

  async write(
    options: { path: string; mode: number; parents: boolean; ifMatch: string; maxBytes: bigint },
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<FileEntry> {
    const stream = this.#processes.takeStream();
    return entryOf(
      await this.#upload({ case: "write", value: { ...options, stream } }, stream, content, signal),
    );
  }

  async unpack(
    path: string,
    limits: { maxBytes: bigint; maxFiles: bigint; anyLinks?: boolean },
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<{ files: bigint; bytes: bigint }> {
    const stream = this.#processes.takeStream();
    const call: FileCallInit = { case: "unpack", value: { ...limits, stream, path } };
    const { files, bytes } = await this.#upload(call, stream, content, signal);
    return { files, bytes };
  }

  async #entry(call: FileCallInit, signal: AbortSignal): Promise<FileEntry> {
    return entryOf(await this.#call(await this.#ready(signal), call, signal));
  }

  async #upload(
    call: FileCallInit,
    stream: number,
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<FileReply> {
    const connection = await this.#ready(signal);
    const answer = (abort: AbortSignal) => this.#call(connection, call, abort);
    return sendContent(connection, { stream, window: this.#processes.window, content, answer, signal });
  }

  async #download(
    call: FileCallInit,
    options: { stream: number; records: boolean },
    signal: AbortSignal,
  ): Promise<{ reply: FileReply; content: Inbound }> {
    const connection = await this.#ready(signal);
    const content = new Inbound(connection, options.stream, options);
    try {
      return { reply: await this.#call(connection, call, signal), content };
    } catch (error) {
      // After a failure nothing comes on the stream; after an abort it may.
      if (signal.aborted) content.cancel(undefined);
      else connection.drop(options.stream);
      throw error;
    }
  }

  async #call(connection: Connection, call: FileCallInit, signal: AbortSignal): Promise<FileReply> {
    try {
      return await connection.call("file", { case: "file", value: { call } as never }, { signal });
    } catch (error) {
      throw CaissonError.from(error);
    }
  }

  async #ready(signal: AbortSignal): Promise<Connection> {
    if (signal.aborted) throw CaissonError.from(signal.reason);
    return this.#lifeline.connection ?? unlessAborted(this.#lifeline.ready(), signal);
  }

  /** What cannot be decoded breaks the rules as much as a bad frame does. */
  #decoded<T>(decode: (frame: Uint8Array) => T, frame: Uint8Array): T {
    try {
      return decode(frame);
    } catch (error) {
      if (error instanceof LinkViolation) this.#lifeline.lose(error);
      throw error;
    }
  }
}

function entryOf(reply: FileReply, content?: Inbound): FileEntry {
  if (reply.entry) return reply.entry;
  content?.cancel(undefined);
  throw new CaissonError("INTERNAL", "the guest said nothing about the file");
}

/** The promise, or a rejection as soon as the signal is aborted. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(CaissonError.from(signal.reason));
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** The items of a stream until its end, or until the signal is aborted. */
async function* map<T>(
  content: Inbound,
  signal: AbortSignal,
  decode: (bytes: Uint8Array) => T,
): AsyncGenerator<T, void, undefined> {
  const abort = () => content.cancel(CaissonError.from(signal.reason));
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  try {
    for await (const bytes of content) yield decode(bytes);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
