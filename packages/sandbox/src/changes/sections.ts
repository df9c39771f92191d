// A change as the sections of a patch that git would make of it, and what stands at the head of each.
import { type LayerChange, LayerChangeKind, LayerFileType, type LayerState } from "@caisson/contract/keeper";
import { quoted } from "./quote.ts";

/** What git knows of one file before and after; a directory or a pipe is nothing to it. */
export interface Section {
  /** As git writes names: quoted where they need it. */
  from: string;
  name: string;
  old: LayerState | undefined;
  now: LayerState | undefined;
  renamed: boolean;
}

/** None where git sees nothing; two where a file became a link or the reverse, which git sees deleted and added. */
export function sectionsOf(change: LayerChange): Section[] {
  const [old, now] = [known(change.old), known(change.new)];
  const name = quoted(change.path);
  const from = change.from.length > 0 ? quoted(change.from) : name;
  const whole = { from, name, old, now, renamed: change.kind === LayerChangeKind.RENAMED };
  if (!old && !now) return [];
  if (!old || !now || old.type === now.type) return [whole];
  return [
    { ...whole, name: from, now: undefined, renamed: false },
    { ...whole, from: name, old: undefined, renamed: false },
  ];
}

/** The lines above a section's content; none where git would see no difference, as with permissions other than to execute. */
export function headOf({ from, name, old, now, renamed }: Section, hasContent: boolean): string[] {
  const [oldMode, newMode] = [gitMode(old), gitMode(now)];
  const lines: string[] = [];
  if (!old) lines.push(`new file mode ${newMode}`);
  else if (!now) lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  if (renamed) lines.push("similarity index 100%", `rename from ${from}`, `rename to ${name}`);
  if (lines.length === 0 && !hasContent) return [];
  return [`diff --git ${inside("a/", from)} ${inside("b/", name)}`, ...lines];
}

/** Puts git's prefix into a name that may be quoted. */
export function inside(prefix: string, name: string): string {
  return name.startsWith('"') ? `"${prefix}${name.slice(1)}` : `${prefix}${name}`;
}

function known(state: LayerState | undefined): LayerState | undefined {
  const isKnown = state?.type === LayerFileType.REGULAR || state?.type === LayerFileType.SYMLINK;
  return isKnown ? state : undefined;
}

function gitMode(state: LayerState | undefined): string {
  if (state?.type === LayerFileType.SYMLINK) return "120000";
  return state && (state.mode & 0o111) === 0 ? "100644" : "100755";
}
