import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { type FileChange, type FileInfo, fileChangeFrom, fileInfoFrom } from "../values/file.ts";
import { concat, Output } from "../values/output.ts";
import { type Content, withData } from "./content.ts";

export type { Content };

export interface ReadOptions extends CallOptions {
  /** Default: 0. */
  offset?: number | undefined;
  /** Default: to the end. */
  length?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Permission bits of a new file. Default: 0o644, or what the replaced file had. */
  mode?: number | undefined;
  /** Make missing parent directories. Default: false. */
  parents?: boolean | undefined;
  /** Only if the file's etag is this; `*` for any existing file, `-` for none. */
  ifMatch?: string | undefined;
}

/** A sandbox's files. Paths are absolute or relative to its working directory. */
export class Files {
  readonly #caller: Caller;
  readonly #sandboxId: string;

  constructor(caller: Caller, sandboxId: string) {
    this.#caller = caller;
    this.#sandboxId = sandboxId;
  }

  /** With `follow`, what a link points to (inside the sandbox) instead of the link. */
  async stat(path: string, options: CallOptions & { follow?: boolean } = {}): Promise<FileInfo> {
    const request = { sandboxId: this.#sandboxId, path, follow: options.follow ?? false };
    return infoOf(await this.#caller.unary((c) => c.FileService.method.statFile, request, options));
  }

  /** A whole file, or a part of it; at most 256 MiB. */
  async read(path: string, options: ReadOptions = {}): Promise<Output> {
    const answers = await this.#caller.collect(
      (c) => c.FileService.method.readFile,
      this.#range(path, options),
      options,
    );
    return new Output(concat(answers.map((answer) => answer.data)));
  }

  /** The same as it comes. */
  async *readStream(path: string, options: ReadOptions = {}): AsyncGenerator<Uint8Array> {
    for await (const { data } of this.#caller.stream(
      (c) => c.FileService.method.readFile,
      this.#range(path, options),
      options,
    )) {
      if (data.length > 0) yield data;
    }
  }

  /** Replaces or creates a file atomically; at most 256 MiB. */
  async write(path: string, content: Content, options: WriteOptions = {}): Promise<FileInfo> {
    const first = {
      sandboxId: this.#sandboxId,
      path,
      mode: options.mode ?? 0,
      parents: options.parents ?? false,
      ifMatch: options.ifMatch ?? "",
    };
    return infoOf(
      await this.#caller.upload((c) => c.FileService.method.writeFile, withData(first, content), options),
    );
  }

  /** In no particular order; with `recursive`, also everything below. */
  async list(path: string, options: CallOptions & { recursive?: boolean } = {}): Promise<Listing> {
    const request = { sandboxId: this.#sandboxId, path, recursive: options.recursive ?? false };
    const answers = await this.#caller.collect((c) => c.FileService.method.listFiles, request, options);
    const files = answers.flatMap((answer) => answer.files.map(fileInfoFrom));
    return Object.assign(files, { truncated: answers.some((answer) => answer.truncated) });
  }

  async mkdir(
    path: string,
    options: CallOptions & { parents?: boolean; mode?: number | undefined } = {},
  ): Promise<FileInfo> {
    const request = {
      sandboxId: this.#sandboxId,
      path,
      parents: options.parents ?? false,
      mode: options.mode ?? 0,
    };
    return infoOf(await this.#caller.unary((c) => c.FileService.method.makeDirectory, request, options));
  }

  async move(
    from: string,
    to: string,
    options: CallOptions & { overwrite?: boolean } = {},
  ): Promise<FileInfo> {
    const request = { sandboxId: this.#sandboxId, from, to, overwrite: options.overwrite ?? false };
    return infoOf(await this.#caller.unary((c) => c.FileService.method.moveFile, request, options));
  }

  async remove(path: string, options: CallOptions & { recursive?: boolean } = {}): Promise<void> {
    const request = { sandboxId: this.#sandboxId, path, recursive: options.recursive ?? false };
    await this.#caller.unary((c) => c.FileService.method.removeFile, request, options);
  }

  /** Changes below a directory until the loop is left. The first is `ready`: later changes will all be told. */
  async *watch(
    path: string,
    options: CallOptions & { recursive?: boolean } = {},
  ): AsyncGenerator<FileChange> {
    const request = { sandboxId: this.#sandboxId, path, recursive: options.recursive ?? false };
    for await (const { event } of this.#caller.stream(
      (c) => c.FileService.method.watchFiles,
      request,
      options,
    )) {
      const change = event && fileChangeFrom(event);
      if (change) yield change;
    }
  }

  /** Unpacks a tar below a directory. A hostile archive is rejected whole. */
  async upload(
    path: string,
    tar: Content,
    options: CallOptions = {},
  ): Promise<{ files: number; bytes: number }> {
    const requests = withData({ sandboxId: this.#sandboxId, path }, tar);
    const answer = await this.#caller.upload((c) => c.FileService.method.uploadArchive, requests, options);
    return { files: Number(answer.files), bytes: Number(answer.bytes) };
  }

  /** A file or directory as tar, as it comes. */
  async *download(path: string, options: CallOptions = {}): AsyncGenerator<Uint8Array> {
    const request = { sandboxId: this.#sandboxId, path };
    for await (const { data } of this.#caller.stream(
      (c) => c.FileService.method.downloadArchive,
      request,
      options,
    )) {
      if (data.length > 0) yield data;
    }
  }

  #range(path: string, { offset = 0, length = 0 }: ReadOptions) {
    return { sandboxId: this.#sandboxId, path, offset: BigInt(offset), length: BigInt(length) };
  }
}

/** `truncated`: the listing was cut at its limit. */
export type Listing = FileInfo[] & { truncated: boolean };

function infoOf({ info }: { info?: Parameters<typeof fileInfoFrom>[0] | undefined }): FileInfo {
  if (!info) throw new CaissonError("INTERNAL", "the server answered without the file");
  return fileInfoFrom(info);
}

/** The first message says what, all of them carry data, none is larger than a message may be. */
