// Unified diffs of text, in the form that `git apply` takes.
import { type LayerChange, LayerFileType, type LayerState } from "@caisson/contract/keeper";
import { headOf, inside, type Section, sectionsOf } from "./sections.ts";

export interface Patch {
  text: string;
  added: number;
  removed: number;
}

/** Beyond this many changed lines a minimal diff is not worth its time. */
const maxEdits = 20_000;

/** The change as a patch, or undefined where there is no text to compare. */
export async function patchOf(change: LayerChange): Promise<Patch | undefined> {
  const sections = sectionsOf(change);
  if (sections.length === 0) return undefined;
  const whole: Patch = { text: "", added: 0, removed: 0 };
  for (const section of sections) {
    const part = await textPatch(section);
    if (part === undefined) return undefined;
    whole.text += part.text;
    whole.added += part.added;
    whole.removed += part.removed;
  }
  return whole;
}

/** One section, or undefined where it is not text. */
export async function textPatch(section: Section): Promise<Patch | undefined> {
  const { from, name, old, now } = section;
  const [before, after] = [textOf(old), textOf(now)];
  if (before === undefined || after === undefined) return undefined;
  const { structuredPatch } = await import("diff");
  const patch = structuredPatch("", "", before, after, "", "", { context: 3, maxEditLength: maxEdits });
  if (patch === undefined) return undefined;
  const lines = headOf(section, patch.hunks.length > 0);
  if (patch.hunks.length > 0) {
    lines.push(
      `--- ${old ? ended(inside("a/", from)) : "/dev/null"}`,
      `+++ ${now ? ended(inside("b/", name)) : "/dev/null"}`,
    );
  }
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
  return { text: lines.map((line) => `${line}\n`).join(""), added, removed };
}

/** A name with a space ends with a tab in these two lines, so that what follows is no date. */
function ended(name: string): string {
  return name.includes(" ") && !name.startsWith('"') ? `${name}\t` : name;
}

/** What git compares: a file's text, a link's target. Undefined for what is not text or too large. */
function textOf(state: LayerState | undefined): string | undefined {
  if (!state) return "";
  if (state.type === LayerFileType.SYMLINK) return decode(state.target);
  return state.size === 0n ? "" : state.content && decode(state.content);
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
