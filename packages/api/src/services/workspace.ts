import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AppliedFileSchema,
  ApplyOutcome,
  ExportFormat,
  rules,
  type ServedService,
  serve,
  type WorkspaceChangeSchema,
  WorkspaceService,
} from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { checkSandboxId, invalid } from "./check.ts";

type Change = MessageInitShape<typeof WorkspaceChangeSchema>;
type File = MessageInitShape<typeof AppliedFileSchema>;

const maxPatterns = 1000;
const maxFiles = 10_000;
/** A message of changes is closed when it has grown to this. */
const batchBytes = rules.sizes.message_bytes / 8;

export function workspaceService(engine: Engine): ServedService {
  return serve(WorkspaceService, {
    async *diffWorkspace({ sandboxId, patch, paths, hideIgnored, after, limit }) {
      let batch: Change[] = [];
      let size = 0;
      for await (const change of engine.changes.list(checkSandboxId(sandboxId), {
        patch,
        paths: checkPaths(paths),
        hideIgnored,
        after: checkAfter(after),
        limit,
      })) {
        batch.push(change);
        size += 64 + (change.path?.length ?? 0) + 3 * (change.patch?.length ?? 0);
        if (size < batchBytes) continue;
        yield { changes: batch };
        [batch, size] = [[], 0];
      }
      if (batch.length > 0) yield { changes: batch };
    },
    async applyWorkspace({ sandboxId, paths, dryRun, force }, call) {
      if (force && paths.length === 0) throw invalid("`force` needs `paths` that say what may be replaced");
      const options = { paths: checkPaths(paths), dryRun, force };
      const { applyId, files } = await engine.changes.apply(checkSandboxId(sandboxId), options, call);
      return summary(applyId, files);
    },
    async *exportWorkspace({ sandboxId, format, paths, hideIgnored }) {
      if (format > ExportFormat.TAR) throw invalid("`format` is not one of ours");
      const chosen = format === ExportFormat.TAR ? ("tar" as const) : ("patch" as const);
      const options = { format: chosen, paths: checkPaths(paths), hideIgnored };
      for await (const data of engine.changes.export(checkSandboxId(sandboxId), options))
        yield* inPieces(data);
    },
    async rebaseWorkspace({ sandboxId }, call) {
      const files = await engine.changes.rebase(checkSandboxId(sandboxId), call);
      const conflicts = files.filter(({ outcome }) => outcome === ApplyOutcome.CONFLICT).length;
      return { files: shown(files), merged: files.length - conflicts, conflicts };
    },
    async undoApply({ sandboxId, applyId }, call) {
      if (!/^[A-Za-z0-9-]{0,64}$/.test(applyId)) throw invalid("`apply_id` is not one of ours");
      const files = await engine.changes.undo(checkSandboxId(sandboxId), applyId, call);
      return {
        files: shown(files),
        undone: files.filter(({ outcome }) => outcome === ApplyOutcome.APPLIED).length,
      };
    },
    async discardWorkspace({ sandboxId }, call) {
      return { bytes: BigInt(await engine.changes.discard(checkSandboxId(sandboxId), call)) };
    },
  });
}

function summary(applyId: string, files: File[]) {
  const count = (...outcomes: ApplyOutcome[]) =>
    files.filter(({ outcome }) => outcomes.includes(outcome ?? ApplyOutcome.UNSPECIFIED)).length;
  return {
    applyId,
    files: shown(files),
    applied: count(ApplyOutcome.APPLIED, ApplyOutcome.MERGED),
    conflicts: count(ApplyOutcome.CONFLICT),
    withheld: count(ApplyOutcome.WITHHELD),
  };
}

/** What was not applied first: that is what people have to act upon. */
function shown(files: File[]): File[] {
  const applied = ({ outcome }: File) => outcome === ApplyOutcome.APPLIED;
  return [...files.filter((file) => !applied(file)), ...files.filter(applied)].slice(0, maxFiles);
}

function* inPieces(data: Uint8Array): Generator<{ data: Uint8Array }> {
  const step = rules.sizes.message_bytes / 4;
  for (let at = 0; at < data.length; at += step) yield { data: data.subarray(at, at + step) };
}

function checkAfter(path: string): string {
  if (path.length > 4 * rules.paths.max_bytes) throw invalid("`after` is not a path");
  return path;
}

function checkPaths(paths: string[]): string[] {
  if (paths.length > maxPatterns) throw invalid(`at most ${maxPatterns} patterns`);
  for (const path of paths) {
    if (path.length > rules.paths.max_bytes || /[\u0000-\u001f\u007f]/.test(path))
      throw invalid("a pattern is not a path");
  }
  return paths;
}
