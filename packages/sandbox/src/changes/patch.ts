// Unified diffs of text, in the form that `git apply` takes.
import type { LayerChange } from "@caisson/contract/keeper";
import { LayerChangeKind, LayerFileType } from "@caisson/contract/keeper";

export interface Patch {
  text: string;
  added: number;
  removed: number;
}

/** Beyond this many changed lines a minimal diff is not worth its time. */
const maxEdits = 20_000;

/** The change as a patch, or undefined where there is no text to compare. */
export async function patchOf(change: LayerChange, path: string, from: string): Promise<Patch | undefined> {
  const { old, new: now } = change;
  const text = (state: typeof old) =>
    state === undefined || state.type !== LayerFileType.REGULAR ? "" : state.content && decode(state.content);
  const [before, after] = [text(old), text(now)];
  if (before === undefined || after === undefined) return undefined;
  if (![old?.type, now?.type].includes(LayerFileType.REGULAR)) return undefined;
  const { structuredPatch } = await import("diff");
  const patch = structuredPatch("", "", before, after, "", "", { context: 3, maxEditLength: maxEdits });
  if (patch === undefined) return undefined;
  const lines = headers(change, path, from);
  let added = 0;
  let removed = 0;
  for (const hunk of patch.hunks) {
    lines.push(
      `@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@`,
      ...hunk.lines,
    );
    added += hunk.lines.filter((line) => line.startsWith("+")).length;
    removed += hunk.lines.filter((line) => line.startsWith("-")).length;
  }
  return { text: `${lines.join("\n")}\n`, added, removed };
}

function headers(change: LayerChange, path: string, from: string): string[] {
  const mode = (bits: number) => `100${(bits & 0o111) === 0 ? "644" : "755"}`;
  const lines = [`diff --git a/${from} b/${path}`];
  switch (change.kind) {
    case LayerChangeKind.ADDED:
      lines.push(`new file mode ${mode(change.new!.mode)}`);
      break;
    case LayerChangeKind.DELETED:
      lines.push(`deleted file mode ${mode(change.old!.mode)}`);
      break;
    default:
      if (change.old && change.new && mode(change.old.mode) !== mode(change.new.mode)) {
        lines.push(`old mode ${mode(change.old.mode)}`, `new mode ${mode(change.new.mode)}`);
      }
      if (change.kind === LayerChangeKind.RENAMED) {
        lines.push("similarity index 100%", `rename from ${from}`, `rename to ${path}`);
      }
  }
  if (change.kind === LayerChangeKind.MODE || change.kind === LayerChangeKind.RENAMED) return lines;
  lines.push(
    change.kind === LayerChangeKind.ADDED ? "--- /dev/null" : `--- a/${from}`,
    change.kind === LayerChangeKind.DELETED ? "+++ /dev/null" : `+++ b/${path}`,
  );
  return lines;
}

function range(start: number, count: number): string {
  return count === 1 ? String(start) : `${count === 0 ? Math.max(0, start - 1) : start},${count}`;
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
