import { type Box, CaissonError, type Change, type Client, type Sandbox } from "@caisson/client";
import type { Io } from "../io/io.ts";
import type { Printer } from "../text/printer.ts";
import { boxNamed } from "./box.ts";

/** What `diff` and its siblings take as their first word. */
export const changesPlace = {
  name: "BOX",
  summary:
    "A sandbox's id, or a session's name; default: the last run in this directory that changed something",
  optional: true,
} as const;

/** How many ended sandboxes are looked through for the last run of a directory. */
const lookBack = 200;

/** The box that is meant: the one that is named, or this directory's last one with changes. */
export async function boxWithChanges(client: Client, io: Io, word: string | undefined): Promise<Box> {
  if (word !== undefined) return boxNamed(client, word);
  for await (const box of boxesOf(client, io.cwd)) {
    if ((await box.workspace.diff()).length > 0) return box;
  }
  throw new CaissonError("SANDBOX_NOT_FOUND", "nothing that ran in this directory has changed anything");
}

/** Undoes in the box that is meant: the one that is named, or this directory's last one that was applied. */
export async function withApply<T>(
  client: Client,
  io: Io,
  word: string | undefined,
  undo: (box: Box) => Promise<T>,
): Promise<T> {
  if (word !== undefined) return undo(await boxNamed(client, word));
  for await (const box of boxesOf(client, io.cwd)) {
    try {
      return await undo(box);
    } catch (thrown) {
      // Nothing of this one was applied.
      if (CaissonError.from(thrown).code !== "PATH_NOT_FOUND") throw thrown;
    }
  }
  throw new CaissonError("SANDBOX_NOT_FOUND", "nothing that ran in this directory has been applied");
}

/** The sandboxes that worked on a directory, the latest first. */
async function* boxesOf(client: Client, dir: string): AsyncGenerator<Box> {
  let looked = 0;
  for await (const sandbox of client.sandboxes.list({ all: true })) {
    if (looked++ >= lookBack) return;
    if (worksOn(sandbox, dir)) yield client.sandboxes.at(sandbox.id);
  }
}

function worksOn({ workspace }: Sandbox, dir: string): boolean {
  return (workspace?.mode === "overlay" || workspace?.mode === "copy") && workspace.dir === dir;
}

/** The changes that people count: files and links, and directories only where they are all there is. */
export function countable(changes: readonly Change[]): Change[] {
  return changes.filter(({ type, kind, path }) => {
    if (type !== "directory") return true;
    return kind !== "added" || !changes.some((other) => other.path.startsWith(`${path}/`));
  });
}

/** The same for changes as they come, in the order of paths: a new directory waits until it is known to hold nothing. */
export async function* countableOf(changes: AsyncIterable<Change>): AsyncGenerator<Change> {
  let empty: Change[] = [];
  for await (const change of changes) {
    empty = empty.filter(({ path }) => !change.path.startsWith(`${path}/`));
    if (change.type === "directory" && change.kind === "added") {
      empty.push(change);
      continue;
    }
    // Nothing that comes now can lie in them any more: `0` is what follows the slash.
    const over = empty.filter(({ path }) => change.path > `${path}0`);
    empty = empty.filter((directory) => !over.includes(directory));
    yield* over;
    yield change;
  }
  yield* empty;
}

const marks = { added: "A", modified: "M", deleted: "D", renamed: "R", mode: "m" } as const;

/** One line per change, as people know it from git. */
export async function printChanges(print: Printer, changes: readonly Change[]): Promise<void> {
  for (const change of countable(changes)) {
    const name = change.kind === "renamed" ? `${change.from} → ${change.path}` : change.path;
    const notes = [
      change.conflict ? print.paint("red", "changed on the host meanwhile") : "",
      change.withheld ? print.paint("yellow", `withheld: ${change.withheld}`) : "",
    ].filter(Boolean);
    await print.line(
      `${marks[change.kind]} ${print.safe(name)}${notes.length > 0 ? `  (${notes.join("; ")})` : ""}`,
    );
  }
}
