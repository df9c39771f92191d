// The changes of one sandbox: listed, applied, taken back.
import { randomBytes } from "node:crypto";
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
import { type JobInit, runJob } from "./job.ts";
import { Merger } from "./merge.ts";
import { patchOf } from "./patch.ts";
import { withheld } from "./protect.ts";

/** Where a sandbox's changes are, and what they are changes of. */
export interface Layer {
  /** The guest binary, which reads it. */
  guest: string;
  projectDir: string;
  /** The directory that holds `upper`. */
  dir: string;
  /** When the sandbox attached the project, in milliseconds since the epoch. */
  attachedAtMs: number;
  /** The project's owner, for a daemon of root's. */
  uid: number;
  gid: number;
}

export type ChangeInit = MessageInitShape<typeof WorkspaceChangeSchema>;
export type AppliedInit = MessageInitShape<typeof AppliedFileSchema>;

/** Files up to this size are compared line by line. */
const contentBytes = 1n << 20n;

/** Lists what changed, in the order of paths. */
export async function* listChanges(
  layer: Layer,
  options: { patch: boolean; paths: readonly string[] },
): AsyncGenerator<ChangeInit> {
  const matches = matcher(options.paths);
  for await (const change of scan(layer, options.patch ? contentBytes : 0n)) {
    const path = pathText(change.path);
    if (matches(path)) yield await describe(change, path, options.patch);
  }
}

export interface Applied {
  applyId: string;
  files: AppliedInit[];
}

/** Brings changes into the project. */
export async function applyChanges(
  layer: Layer,
  options: { paths: readonly string[]; dryRun: boolean },
): Promise<Applied> {
  const matches = matcher(options.paths);
  const merger = new Merger(layer.projectDir, layer.attachedAtMs);
  const files: AppliedInit[] = [];
  const items: MessageInitShape<typeof ApplyItemSchema>[] = [];
  const merged = new Set<string>();
  for await (const change of scan(layer, contentBytes)) {
    const path = pathText(change.path);
    if (!matches(path)) continue;
    const reason = options.paths.includes(path) ? undefined : withheld(path);
    if (reason !== undefined) {
      if (change.new?.type === LayerFileType.DIRECTORY) continue;
      files.push({ path: change.path, outcome: ApplyOutcome.WITHHELD, reason });
      continue;
    }
    const content = change.conflict ? await merger.merge(path, change) : undefined;
    if (content !== undefined) merged.add(path);
    items.push({ path: change.path, ...(content && { content }) });
    if (change.kind === LayerChangeKind.RENAMED) items.push({ path: change.from });
  }
  const applyId = `${Date.now().toString(36)}-${randomBytes(4).toString("hex")}`;
  let applied = 0;
  for await (const item of runJob(layer.guest, {
    ...place(layer),
    job: {
      case: "apply",
      value: {
        items,
        attachedAtNs: attachedAtNs(layer),
        dryRun: options.dryRun,
        applyId,
        uid: layer.uid,
        gid: layer.gid,
      },
    },
  })) {
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
  const job = { case: "undo" as const, value: { applyId, dryRun: false } };
  for await (const item of runJob(layer.guest, { ...place(layer), job })) {
    if (!("outcome" in item)) continue;
    const { path, result, reason } = item.outcome;
    files.push({ path, outcome: outcomeOf(result, false) ?? ApplyOutcome.APPLIED, reason });
  }
  return files;
}

/** Completes an apply that a crash interrupted. */
export async function recoverApply(layer: Layer): Promise<void> {
  for await (const _ of runJob(layer.guest, { ...place(layer), job: { case: "recover", value: {} } }));
}

async function* scan(layer: Layer, content: bigint): AsyncGenerator<LayerChange> {
  const value = { contentBytes: content, renames: true, attachedAtNs: attachedAtNs(layer) };
  for await (const item of runJob(layer.guest, { ...place(layer), job: { case: "scan", value } })) {
    if ("change" in item) yield item.change;
  }
}

function place(layer: Layer): Pick<JobInit, "lower" | "layer"> {
  return { lower: layer.projectDir, layer: layer.dir };
}

function attachedAtNs(layer: Layer): bigint {
  return BigInt(Math.floor(layer.attachedAtMs)) * 1_000_000n;
}

async function describe(change: LayerChange, path: string, withPatch: boolean): Promise<ChangeInit> {
  const { old, new: now } = change;
  const from = change.from.length > 0 ? pathText(change.from) : path;
  const patch = withPatch ? await patchOf(change, path, from) : undefined;
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
    withheld: withheld(path) ?? "",
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
