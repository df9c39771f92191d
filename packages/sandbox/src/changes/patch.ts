// Unified diffs of text, in the form that `git apply` takes.
import { type LayerChange, LayerChangeKind, LayerFileType, type LayerState } from "@caisson/contract/keeper";
import { quoted } from "./quote.ts";

export interface Patch {
  text: string;
  added: number;
  removed: number;
}

/** Beyond this many changed lines a minimal diff is not worth its time. */
const maxEdits = 20_000;

/** The change as a patch, or undefined where there is no text to compare. */
export async function patchOf(change: LayerChange): Promise<Patch | undefined> {
  const { old, new: now } = change;
  if (![old?.type, now?.type].some((type) => type !== undefined && gitTypes.has(type))) return undefined;
  const [before, after] = [textOf(old), textOf(now)];
  if (before === undefined || after === undefined) return undefined;
  const name = quoted(change.path);
  const from = change.from.length > 0 ? quoted(change.from) : name;
  const [oldMode, newMode] = [gitMode(old), gitMode(now)];
  // A file that became a link, or the reverse, is deleted and added, as git sees it.
  if (oldMode && newMode && oldMode.slice(0, 3) !== newMode.slice(0, 3)) {
    return joined([
      await section({ from, name, before, after: "", oldMode, newMode: "" }),
      await section({ from: name, name, before: "", after, oldMode: "", newMode }),
    ]);
  }
  const renamed = change.kind === LayerChangeKind.RENAMED;
  return section({ from, name, before, after, oldMode, newMode, renamed });
}

interface Section {
  from: string;
  name: string;
  before: string;
  after: string;
  /** As git writes it; empty where there is nothing that git knows. */
  oldMode: string;
  newMode: string;
  renamed?: boolean;
}

async function section(of: Section): Promise<Patch | undefined> {
  const { structuredPatch } = await import("diff");
  const options = { context: 3, maxEditLength: maxEdits };
  const patch = structuredPatch("", "", of.before, of.after, "", "", options);
  if (patch === undefined) return undefined;
  const lines = headers(of, patch.hunks.length > 0);
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

function headers({ from, name, oldMode, newMode, renamed }: Section, hasHunks: boolean): string[] {
  const lines = [`diff --git ${inside("a/", from)} ${inside("b/", name)}`];
  if (!oldMode) lines.push(`new file mode ${newMode}`);
  else if (!newMode) lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  if (renamed) lines.push("similarity index 100%", `rename from ${from}`, `rename to ${name}`);
  if (hasHunks) {
    lines.push(
      `--- ${oldMode ? ended(inside("a/", from)) : "/dev/null"}`,
      `+++ ${newMode ? ended(inside("b/", name)) : "/dev/null"}`,
    );
  }
  return lines;
}

/** Puts git's prefix into a name that may be quoted. */
function inside(prefix: string, name: string): string {
  return name.startsWith('"') ? `"${prefix}${name.slice(1)}` : `${prefix}${name}`;
}

/** A name with a space ends with a tab in these two lines, so that what follows is no date. */
function ended(name: string): string {
  return name.includes(" ") && !name.startsWith('"') ? `${name}\t` : name;
}

const gitTypes = new Set<LayerFileType>([LayerFileType.REGULAR, LayerFileType.SYMLINK]);

function gitMode(state: LayerState | undefined): string {
  if (state?.type === LayerFileType.SYMLINK) return "120000";
  if (state?.type !== LayerFileType.REGULAR) return "";
  return (state.mode & 0o111) === 0 ? "100644" : "100755";
}

/** What git compares: a file's text, a link's target. Undefined for what is not text or too large. */
function textOf(state: LayerState | undefined): string | undefined {
  if (state?.type === LayerFileType.SYMLINK) return decode(state.target);
  if (state?.type !== LayerFileType.REGULAR) return "";
  return state.size === 0n ? "" : state.content && decode(state.content);
}

function joined(parts: (Patch | undefined)[]): Patch | undefined {
  let whole: Patch = { text: "", added: 0, removed: 0 };
  for (const part of parts) {
    if (part === undefined) return undefined;
    whole = {
      text: whole.text + part.text,
      added: whole.added + part.added,
      removed: whole.removed + part.removed,
    };
  }
  return whole;
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
