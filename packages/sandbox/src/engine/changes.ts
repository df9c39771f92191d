import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ApplyOutcome, CaissonError, SandboxState, WorkspaceMode } from "@caisson/contract";
import {
  applyChanges,
  exportChanges,
  type Layer,
  listChanges,
  rebaseChanges,
  recoverApply,
  undoApply,
} from "../changes/index.ts";
import { askForApply, askForProtected } from "./asking.ts";
import type { EngineContext } from "./context.ts";
import type { EngineChanges } from "./engine.ts";
import { livingBox, sandboxRecord } from "./find.ts";
import { hasChanges, hasOnlyGitIndex, layerName } from "./layer.ts";
import type { SandboxRecord } from "./records.ts";
import { fetchChanges } from "./transfer/pull.ts";

/** What sandboxes changed: seen, applied, taken back, thrown away. One of these at a time per project. */
export function engineChanges(context: EngineContext): EngineChanges {
  const busy = new Map<string, Promise<unknown>>();

  const inTurn = <T>(record: SandboxRecord, act: () => Promise<T>): Promise<T> => {
    const { dir } = record.workspace;
    const turn = (busy.get(dir) ?? Promise.resolve()).then(act, act);
    busy.set(dir, turn);
    const done = () => busy.get(dir) === turn && busy.delete(dir);
    turn.then(done, done);
    return turn;
  };

  return {
    async *list(sandboxId, options) {
      const record = changedRecord(context, sandboxId);
      await fetchChanges(context, record);
      if (hasChanges(dirOf(context, record))) yield* listChanges(await layerOf(context, record), options);
    },
    async *export(sandboxId, options) {
      const record = changedRecord(context, sandboxId);
      await fetchChanges(context, record);
      if (hasChanges(dirOf(context, record))) yield* exportChanges(await layerOf(context, record), options);
    },
    async rebase(sandboxId, call) {
      const record = await endedRecord(context, sandboxId);
      return inTurn(record, async () => {
        if (!hasChanges(dirOf(context, record))) return [];
        const files = await rebaseChanges(await layerOf(context, record));
        const conflicts = files.filter(({ outcome }) => outcome === ApplyOutcome.CONFLICT).length;
        const data = { merged: files.length - conflicts, conflicts };
        await context.commit([{ type: "workspace.rebased", actor: call.actor, sandboxId: record.id, data }]);
        return files;
      });
    },
    async apply(sandboxId, options, call) {
      const record = changedRecord(context, sandboxId);
      if (!options.dryRun) await askForApply(context, record, options.paths, call);
      const { paths } = options;
      const withheld = () => withheldAmong(context, record, paths);
      const unprotected = options.dryRun
        ? paths
        : await askForProtected(context, record, { paths, withheld }, call);
      return inTurn(record, async () => {
        await fetchChanges(context, record);
        if (!hasChanges(dirOf(context, record))) return { applyId: "", files: [] };
        const applied = await applyChanges(await layerOf(context, record), { ...options, unprotected });
        if (options.dryRun) return applied;
        const count = (outcome: ApplyOutcome) =>
          applied.files.filter((file) => file.outcome === outcome).length;
        const data = {
          apply_id: applied.applyId,
          applied: count(ApplyOutcome.APPLIED) + count(ApplyOutcome.MERGED),
          conflicts: count(ApplyOutcome.CONFLICT),
          withheld: count(ApplyOutcome.WITHHELD),
        };
        await context.commit([{ type: "workspace.applied", actor: call.actor, sandboxId: record.id, data }]);
        return applied;
      });
    },
    async undo(sandboxId, applyId, call) {
      const record = changedRecord(context, sandboxId);
      return inTurn(record, async () => {
        const layer = await layerOf(context, record);
        const chosen = applyId || (await latestApply(layer));
        const files = await undoApply(layer, chosen);
        const data = { apply_id: chosen, files: files.length };
        await context.commit([{ type: "workspace.undone", actor: call.actor, sandboxId: record.id, data }]);
        return files;
      });
    },
    async discard(sandboxId, call) {
      const record = await endedRecord(context, sandboxId);
      return inTurn(record, async () => {
        const bytes = await context.parts.trees.remove(join(dirOf(context, record), layerName));
        const data = { bytes };
        await context.commit([
          { type: "workspace.discarded", actor: call.actor, sandboxId: record.id, data },
        ]);
        return bytes;
      });
    },
  };
}

/** Completes the applies that a crash interrupted. */
export async function recoverApplies(
  context: EngineContext,
  records: Iterable<SandboxRecord>,
): Promise<void> {
  for (const record of records) {
    if (!existsSync(join(dirOf(context, record), layerName, "applies"))) continue;
    try {
      await recoverApply(await layerOf(context, record));
    } catch (error) {
      context.log("error", "an interrupted apply could not be completed", { sandbox: record.id, error });
    }
  }
}

/** Only when a sandbox has ended is its layer nobody's but ours. */
async function endedRecord(context: EngineContext, sandboxId: string): Promise<SandboxRecord> {
  const box = livingBox(context, sandboxId);
  // A run's sandbox outlives its command by a moment.
  if (box?.over) await box.gone.promise;
  const record = changedRecord(context, sandboxId);
  if (record.state === SandboxState.ENDED) return record;
  throw new CaissonError("WORKSPACE_IN_USE", "the sandbox still works on its changes");
}

function changedRecord(context: EngineContext, sandboxId: string): SandboxRecord {
  const record = sandboxRecord(context, sandboxId);
  const { mode } = record.workspace;
  if ((mode === WorkspaceMode.OVERLAY || mode === WorkspaceMode.COPY) && record.place) return record;
  throw new CaissonError("NO_WORKSPACE", "the sandbox has no project as an overlay or a copy");
}

function dirOf(context: EngineContext, record: SandboxRecord): string {
  return context.dirOf(record.place);
}

/** Has the sandbox changed anything? A copy has to be compared for that, and so has an index that git wrote anew. */
export async function changedAnything(context: EngineContext, record: SandboxRecord): Promise<boolean> {
  if (!hasChanges(dirOf(context, record))) return false;
  const { mode } = record.workspace;
  if (mode !== WorkspaceMode.COPY && !(await hasOnlyGitIndex(dirOf(context, record)))) return true;
  for await (const _ of listChanges(await layerOf(context, record), { patch: false, paths: [] })) return true;
  return false;
}

async function layerOf(context: EngineContext, record: SandboxRecord): Promise<Layer> {
  const { uid, gid } = await stat(record.workspace.dir).catch(() => {
    throw new CaissonError("PATH_NOT_FOUND", "the project is not there any more");
  });
  return {
    guest: context.parts.guest,
    projectDir: record.workspace.dir,
    dir: join(dirOf(context, record), layerName),
    isCopy: record.workspace.mode === WorkspaceMode.COPY,
    attachedAtMs: record.createdAt,
    uid,
    gid,
  };
}

/** What apply would withhold of the changes at these paths. */
async function* withheldAmong(
  context: EngineContext,
  record: SandboxRecord,
  paths: readonly string[],
): AsyncGenerator<{ path: string; why: string }> {
  await fetchChanges(context, record);
  if (!hasChanges(dirOf(context, record))) return;
  const options = { paths, patch: false };
  for await (const { path = new Uint8Array(), withheld } of listChanges(
    await layerOf(context, record),
    options,
  ))
    if (withheld) yield { path: Buffer.from(path).toString(), why: withheld };
}

async function latestApply(layer: Layer): Promise<string> {
  const ids = await readdir(join(layer.dir, "applies")).catch(() => []);
  const latest = ids.sort().at(-1);
  if (latest === undefined) throw new CaissonError("PATH_NOT_FOUND", "nothing was applied");
  return latest;
}
