// The changes of one sandbox: listed, applied, taken back.
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AppliedFileSchema,
  ApplyOutcome,
  ChangeKind,
  type WorkspaceChangeSchema,
} from "@caisson/contract";
import {
  type ApplyItemSchema,
  ApplyResult,
  type LayerChange,
  LayerChangeKind,
  LayerFileType,
} from "@caisson/contract/keeper";
import { matcher } from "./glob.ts";
import { hooksPlaces } from "./hooks.ts";
import { withoutIgnored } from "./ignored.ts";
import { type JobInit, type JobItem, runJob } from "./job.ts";
import { Merger } from "./merge.ts";
import { patchOf } from "./patch.ts";
import { type Judged, Protection } from "./protect.ts";
import { readRebase } from "./rebase.ts";
import { Worktrees } from "./worktrees.ts";

/** Where a sandbox's changes are, and what they are changes of. */
export interface Layer {
  /** The guest binary, which reads it. */
  guest: string;
  projectDir: string;
  /** The directory that holds `upper`. */
  dir: string;
  /** `upper` is a copy of the project and not what an overlay wrote. */
  isCopy: boolean;
  /** When the sandbox attached the project, in milliseconds since the epoch. */
  attachedAtMs: number;
  /** The project's owner, for a daemon of root's. */
  uid: number;
  gid: number;
}

/** What filling one takes. */
export type CopiedLayer = Pick<Layer, "guest" | "projectDir" | "dir">;

export type ChangeInit = MessageInitShape<typeof WorkspaceChangeSchema>;
export type AppliedInit = MessageInitShape<typeof AppliedFileSchema>;

/** Any `git status` may write it anew, without anybody having changed anything. */
export const gitIndex = ".git/index";

/** Files up to this size are compared line by line. */
export const contentBytes = 1n << 20n;

export interface ListOptions {
  /** With unified diffs of text. */
  patch: boolean;
  paths: readonly string[];
  /** Without what the project's `.gitignore` files name. Default: false. */
  hideIgnored?: boolean;
  /** Only what comes after this path, and at most so many. Default: everything. */
  after?: string;
  limit?: number;
}

/** Lists what changed, in the order of paths. */
export async function* listChanges(layer: Layer, options: ListOptions): AsyncGenerator<ChangeInit> {
  const { patch, hideIgnored = false, limit = 0 } = options;
  let count = 0;
  const found = chosenChanges(layer, options, { content: patch ? contentBytes : 0n });
  const shown = hideIgnored ? withoutIgnored(layer, found) : found;
  const { protection } = await protectionOf(layer);
  for await (const { change, withheld } of judgedChanges(protection, shown)) {
    yield { ...(await describe(change, pathText(change.path), patch)), withheld };
    if (++count === limit) return;
  }
}

async function* chosenChanges(
  layer: Layer,
  { paths, after = "" }: ListOptions,
  options: { content: bigint },
): AsyncGenerator<LayerChange> {
  const matches = matcher(paths);
  const start = Buffer.from(after);
  for await (const change of scan(layer, options)) {
    if (after !== "" && Buffer.compare(change.path, start) <= 0) continue;
    if (matches(pathText(change.path))) yield change;
  }
}

async function* judgedChanges(protection: Protection, changes: AsyncIterable<LayerChange>) {
  for await (const change of changes)
    yield { change, withheld: protection.withheld(judged(change, pathText(change.path))) ?? "" };
}

export interface Applied {
  applyId: string;
  files: AppliedInit[];
}

/** Brings changes into the project. */
export async function applyChanges(
  layer: Layer,
  options: {
    paths: readonly string[];
    /** Of these, the ones that are not withheld because they are named. Default: all. */
    unprotected?: readonly string[];
    dryRun: boolean;
    force?: boolean;
  },
): Promise<Applied> {
  const { paths, unprotected = paths } = options;
  const matches = matcher(paths);
  const merger = new Merger(layer);
  const { protection, worktrees } = await protectionOf(layer);
  const why = (change: LayerChange, path: string) => {
    const reason = protection.withheld(judged(change, path));
    return unprotected.includes(path) ? undefined : reason;
  };
  const files: AppliedInit[] = [];
  const items: MessageInitShape<typeof ApplyItemSchema>[] = [];
  const merged = new Set<string>();
  for await (const change of scan(layer, { content: contentBytes, conflictsOnly: true })) {
    const path = pathText(change.path);
    if (!matches(path)) continue;
    const reason = why(change, path);
    if (reason !== undefined) {
      // A directory is only in the way of what is in it.
      if ((change.new ?? change.old)?.type === LayerFileType.DIRECTORY) continue;
      files.push({ path: change.path, outcome: ApplyOutcome.WITHHELD, reason });
      continue;
    }
    const named = options.force === true && options.paths.length > 0;
    const content = change.conflict && !named ? await merger.merge(path, change) : undefined;
    if (content !== undefined) merged.add(path);
    const force = change.conflict && (named || (path === gitIndex && (await merger.nothingStaged())));
    const type = change.new?.type ?? LayerFileType.UNSPECIFIED;
    const known = change.new && !change.conflict ? worktrees.content(path) : undefined;
    const written = content ?? known;
    items.push({
      path: change.path,
      type,
      force,
      from: movedFrom(change),
      ...(written && { content: written }),
    });
  }

  /** Of a rename: what is to go. What was not chosen, or would be withheld, stays. */
  function movedFrom(change: LayerChange): Uint8Array {
    if (change.kind !== LayerChangeKind.RENAMED) return change.from;
    const from = pathText(change.from);
    const stays = !matches(from) || why({ ...change, path: change.from, new: undefined }, from) !== undefined;
    return stays ? new Uint8Array() : change.from;
  }
  const applyId = `${Date.now().toString(36)}-${randomBytes(4).toString("hex")}`;
  let applied = 0;
  const value = {
    items,
    ...sinceOf(layer),
    dryRun: options.dryRun,
    applyId,
    uid: layer.uid,
    gid: layer.gid,
  };
  for await (const item of completed(layer, applyId, { case: "apply", value })) {
    if (!("outcome" in item)) continue;
    const { path, result, reason } = item.outcome;
    const outcome = outcomeOf(result, merged.has(pathText(path)));
    if (outcome === undefined) continue;
    if (outcome === ApplyOutcome.APPLIED || outcome === ApplyOutcome.MERGED) applied++;
    files.push({ path, outcome, reason });
  }
  return { applyId: applied > 0 && !options.dryRun ? applyId : "", files };
}

/** Takes an apply back. */
export async function undoApply(layer: Layer, applyId: string): Promise<AppliedInit[]> {
  const files: AppliedInit[] = [];
  const merger = new Merger(layer);
  const force = (await merger.nothingStaged()) ? [Buffer.from(gitIndex)] : [];
  const job = { case: "undo" as const, value: { applyId, dryRun: false, force } };
  for await (const item of completed(layer, undefined, job)) {
    if (!("outcome" in item)) continue;
    const { path, result, reason } = item.outcome;
    files.push({ path, outcome: outcomeOf(result, false) ?? ApplyOutcome.APPLIED, reason });
  }
  return files;
}

/** Completes an apply or undo that a crash interrupted. */
export async function recoverApply(layer: Layer): Promise<void> {
  for await (const _ of runJob(layer.guest, { ...place(layer), job: { case: "recover", value: {} } }));
}

/** Runs a job that changes the project. A helper that dies on the way leaves nothing half done: it is completed, or
 * everything is as it was and the call fails. */
async function* completed(
  layer: Layer,
  applyId: string | undefined,
  job: NonNullable<JobInit["job"]>,
): AsyncGenerator<JobItem> {
  try {
    yield* runJob(layer.guest, { ...place(layer), job });
  } catch (error) {
    await recoverApply(layer);
    // What the helper told before it died is what it was about to do.
    if (!applyId || !existsSync(join(layer.dir, "applies", applyId, "applied"))) throw error;
  }
}

/** Fills a layer with a copy of the project. */
export async function copyProject(layer: CopiedLayer): Promise<void> {
  const job = { case: "copy" as const, value: {} };
  for await (const _ of runJob(layer.guest, copyJob(layer, job)));
}

/** A layer's copy of the project as a tar stream, without some names and what is in them. */
export async function* packLayer(
  layer: CopiedLayer,
  leaveOut: Uint8Array[] = [],
): AsyncGenerator<Uint8Array> {
  const job = { case: "pack" as const, value: { leaveOut } };
  for await (const item of runJob(layer.guest, copyJob(layer, job))) if ("data" in item) yield item.data;
}

/** Brings a copy up to date: removes names, then unpacks a tar stream, whole or not at all. */
export async function unpackLayer(
  layer: CopiedLayer,
  options: { remove: Uint8Array[]; maxBytes: bigint; maxFiles: bigint },
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  const job = { case: "unpack" as const, value: options };
  for await (const _ of runJob(layer.guest, copyJob(layer, job), content));
}

function copyJob(layer: CopiedLayer, job: JobInit["job"]): JobInit {
  return { lower: layer.projectDir, layer: layer.dir, isCopy: true, job } as JobInit;
}

export async function* scan(
  layer: Layer,
  options: { content: bigint; conflictsOnly?: boolean; binary?: boolean },
): AsyncGenerator<LayerChange> {
  const value = {
    contentBytes: options.content,
    conflictsOnly: options.conflictsOnly ?? false,
    renames: true,
    binaryContents: options.binary ?? false,
    ...sinceOf(layer),
  };
  for await (const item of runJob(layer.guest, { ...place(layer), job: { case: "scan", value } })) {
    if ("change" in item) yield item.change;
  }
}

async function protectionOf(layer: Layer): Promise<{ protection: Protection; worktrees: Worktrees }> {
  const { projectDir } = layer;
  const worktrees = await Worktrees.read(projectDir, layer.dir, async function* () {
    for await (const { path, new: now } of scan(layer, { content: 4096n }))
      yield { path: pathText(path), content: now?.content };
  });
  const protection = new Protection({
    projectDir,
    hasInProject: (path) => existsSync(join(projectDir, path)),
    hooks: await hooksPlaces(layer),
    isWorktree: (path) => worktrees.passes(path),
  });
  return { protection, worktrees };
}

function judged(change: LayerChange, path: string): Judged {
  switch (change.new?.type) {
    case undefined:
      return { path, now: undefined };
    case LayerFileType.REGULAR:
      return { path, now: "file" };
    case LayerFileType.DIRECTORY:
      return { path, now: "directory" };
    case LayerFileType.SYMLINK:
      return { path, now: "link", target: pathText(change.new.target) };
    default:
      return { path, now: "other" };
  }
}

export function place(layer: Layer): Pick<JobInit, "lower" | "layer" | "isCopy"> {
  return { lower: layer.projectDir, layer: layer.dir, isCopy: layer.isCopy };
}

/** From when on what the project's owner changes is in conflict with the sandbox's changes. */
export function sinceOf(layer: Layer) {
  const nanoseconds = (ms: number) => BigInt(Math.floor(ms)) * 1_000_000n;
  const rebase = readRebase(layer.dir);
  return {
    attachedAtNs: nanoseconds(layer.attachedAtMs),
    ...(rebase && {
      rebased: {
        atNs: nanoseconds(rebase.atMs),
        except: rebase.except.map((path) => Buffer.from(path, "base64")),
      },
    }),
  };
}

async function describe(change: LayerChange, path: string, withPatch: boolean): Promise<ChangeInit> {
  const { old, new: now } = change;
  // No tool takes patches of git's own files.
  const patch = withPatch && !path.split("/").includes(".git") ? await patchOf(change) : undefined;
  return {
    path: change.path,
    kind: kinds[change.kind] ?? ChangeKind.UNSPECIFIED,
    from: change.from,
    type: types[(now ?? old)?.type ?? 0] ?? "special",
    oldMode: old?.mode ?? 0,
    newMode: now?.mode ?? 0,
    oldSize: old?.size ?? 0n,
    newSize: now?.size ?? 0n,
    binary: Boolean(old?.binary || now?.binary),
    conflict: change.conflict,
    patch: patch?.text ?? "",
    linesAdded: patch?.added ?? 0,
    linesRemoved: patch?.removed ?? 0,
  };
}

const kinds: Record<number, ChangeKind> = {
  [LayerChangeKind.ADDED]: ChangeKind.ADDED,
  [LayerChangeKind.MODIFIED]: ChangeKind.MODIFIED,
  [LayerChangeKind.DELETED]: ChangeKind.DELETED,
  [LayerChangeKind.RENAMED]: ChangeKind.RENAMED,
  [LayerChangeKind.MODE]: ChangeKind.MODE,
};

const types: Record<number, string> = {
  [LayerFileType.REGULAR]: "file",
  [LayerFileType.DIRECTORY]: "directory",
  [LayerFileType.SYMLINK]: "link",
  [LayerFileType.SPECIAL]: "special",
};

function outcomeOf(result: ApplyResult, wasMerged: boolean): ApplyOutcome | undefined {
  switch (result) {
    case ApplyResult.APPLIED:
      return wasMerged ? ApplyOutcome.MERGED : ApplyOutcome.APPLIED;
    case ApplyResult.CONFLICT:
      return ApplyOutcome.CONFLICT;
    case ApplyResult.REFUSED:
      return ApplyOutcome.REFUSED;
    default:
      return undefined;
  }
}

/** For matching and showing; the bytes themselves go to the helper. */
function pathText(path: Uint8Array): string {
  return Buffer.from(path.buffer, path.byteOffset, path.byteLength).toString("utf8");
}
