import type { ExportFormat } from "@caisson/contract";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { type AppliedFile, appliedFrom, type Change, changeFrom } from "../values/change.ts";
import { toNumber } from "../values/numbers.ts";

export interface DiffOptions extends CallOptions {
  /** With unified diffs of text files. Default: false. */
  patch?: boolean | undefined;
  /** Only what matches one of these globs. Default: everything. */
  paths?: readonly string[] | undefined;
  /** Leave out what the project's `.gitignore` files name. Default: false. */
  hideIgnored?: boolean | undefined;
  /** Only what comes after this path, and at most so many: for reading in pages. Default: everything. */
  after?: string | undefined;
  limit?: number | undefined;
}

export interface ExportOptions extends CallOptions {
  /** A patch for `git apply`, or an archive in the form of an image's layer. Default: `patch`. */
  format?: "patch" | "tar" | undefined;
  /** Only what matches one of these globs. Default: everything. */
  paths?: readonly string[] | undefined;
  hideIgnored?: boolean | undefined;
}

export interface Rebased {
  /** What both sides had changed. */
  files: AppliedFile[];
  merged: number;
  conflicts: number;
}

export interface ApplyOptions extends CallOptions {
  /** Only what matches; a path that is withheld is applied if it is named exactly. Default: everything. */
  paths?: readonly string[] | undefined;
  /** Only say what would happen. Default: false. */
  dryRun?: boolean | undefined;
  /** Also what the project's owner changed meanwhile, as far as `paths` name it. Default: false. */
  force?: boolean | undefined;
}

export interface Applied {
  /** For `undo`; empty if nothing was applied. */
  applyId: string;
  /** Those that were not applied first, at most 10,000 in all. */
  files: AppliedFile[];
  applied: number;
  conflicts: number;
  withheld: number;
}

/** Changes that can be applied as they were listed. */
export interface Changes extends ReadonlyArray<Change> {
  /** Brings these into the project, by name; what is withheld stays withheld. */
  apply(options?: Omit<ApplyOptions, "paths">): Promise<Applied>;
}

/** What a sandbox changed in the project that it has as an overlay. */
export class Workspace {
  readonly #caller: Caller;
  readonly #sandboxId: string;

  constructor(caller: Caller, sandboxId: string) {
    this.#caller = caller;
    this.#sandboxId = sandboxId;
  }

  /** What changed, in the order of paths. */
  async diff(options: DiffOptions = {}): Promise<Changes> {
    const answers = await this.#caller.collect(
      (c) => c.WorkspaceService.method.diffWorkspace,
      this.#diffRequest(options),
      options,
    );
    const changes = answers.flatMap((answer) => answer.changes.map(changeFrom));
    const paths = [...(options.paths ?? [])];
    return Object.assign(changes, { apply: (more: ApplyOptions = {}) => this.apply({ ...more, paths }) });
  }

  /** The same as they are found, however many there are. */
  async *changes(options: DiffOptions = {}): AsyncGenerator<Change> {
    for await (const { changes } of this.#caller.stream(
      (c) => c.WorkspaceService.method.diffWorkspace,
      this.#diffRequest(options),
      options,
    ))
      for (const change of changes) yield changeFrom(change);
  }

  #diffRequest({ patch = false, paths = [], hideIgnored = false, after = "", limit = 0 }: DiffOptions) {
    return { sandboxId: this.#sandboxId, patch, paths: [...paths], hideIgnored, after, limit };
  }

  /** The changes in a form that other tools take, as it comes. */
  async *export(options: ExportOptions = {}): AsyncGenerator<Uint8Array> {
    const { format = "patch", paths = [], hideIgnored = false } = options;
    const request = {
      sandboxId: this.#sandboxId,
      format: (format === "tar" ? 2 : 1) as ExportFormat,
      paths: [...paths],
      hideIgnored,
    };
    for await (const { data } of this.#caller.stream(
      (c) => c.WorkspaceService.method.exportWorkspace,
      request,
      options,
    ))
      yield data;
  }

  /** Brings the changes of an ended sandbox up to what the project is now; the project is not touched. */
  async rebase(options: CallOptions = {}): Promise<Rebased> {
    const request = { sandboxId: this.#sandboxId };
    const answer = await this.#caller.unary(
      (c) => c.WorkspaceService.method.rebaseWorkspace,
      request,
      options,
    );
    return { files: answer.files.map(appliedFrom), merged: answer.merged, conflicts: answer.conflicts };
  }

  async apply(options: ApplyOptions = {}): Promise<Applied> {
    const request = {
      sandboxId: this.#sandboxId,
      paths: [...(options.paths ?? [])],
      dryRun: options.dryRun ?? false,
      force: options.force ?? false,
    };
    const answer = await this.#caller.unary(
      (c) => c.WorkspaceService.method.applyWorkspace,
      request,
      options,
    );
    const { applyId, applied, conflicts, withheld } = answer;
    return { applyId, applied, conflicts, withheld, files: answer.files.map(appliedFrom) };
  }

  /** Takes an apply back, the latest if none is named; says what could not be taken back. */
  async undo(
    options: CallOptions & { applyId?: string | undefined } = {},
  ): Promise<{ undone: number; files: AppliedFile[] }> {
    const request = { sandboxId: this.#sandboxId, applyId: options.applyId ?? "" };
    const { undone, files } = await this.#caller.unary(
      (c) => c.WorkspaceService.method.undoApply,
      request,
      options,
    );
    return { undone, files: files.map(appliedFrom) };
  }

  /** Throws the changes of an ended sandbox away; returns the bytes that were freed. */
  async discard(options: CallOptions = {}): Promise<number> {
    const request = { sandboxId: this.#sandboxId };
    const { bytes } = await this.#caller.unary(
      (c) => c.WorkspaceService.method.discardWorkspace,
      request,
      options,
    );
    return toNumber(bytes);
  }
}
