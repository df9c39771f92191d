import { readdirSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { type Caller, mustOwn } from "@caisson/contract";
import type { NewEvent } from "@caisson/store";
import type { EngineContext } from "../context.ts";
import { kinds } from "../records.ts";
import { allSnapshots, type SnapshotRecord, snapshotDir, snapshotsDir } from "./record.ts";

/** How the directory of a snapshot that is not complete yet begins. */
export const unfinished = "new-";

const turns = new WeakMap<EngineContext, Promise<unknown>>();

/** One at a time: of equal snapshots that come, go and come again, files and record stay together. */
export function inTurn<T>(context: EngineContext, act: () => Promise<T>): Promise<T> {
  const turn = (turns.get(context) ?? Promise.resolve()).then(act, act);
  turns.set(
    context,
    turn.catch(() => {}),
  );
  return turn;
}

/**
 * Puts a complete snapshot where it belongs and records it. The same content is kept once; it takes a name and labels that it is given.
 * A template replaces the one of the same name, which stays as a snapshot. Whoever does not see everything changes nothing of another's.
 */
export function putInPlace(
  context: EngineContext,
  dir: string,
  made: SnapshotRecord,
  event: Pick<NewEvent, "type" | "sandboxId">,
  call: Caller,
): Promise<{ record: SnapshotRecord; isNew: boolean }> {
  return inTurn(context, async () => {
    const known = context.store.get<SnapshotRecord>(kinds.snapshot, made.id);
    const place = snapshotDir(context, made.id);
    const { id, template, memory, labels } = known ? { ...known, ...namesOf(made, known) } : made;
    const before =
      template === ""
        ? []
        : allSnapshots(context).filter((other) => other.template === template && other.id !== id);
    if (known) mustOwn(call, known.sandbox.actor, "what is kept of the same content");
    for (const { sandbox } of before) mustOwn(call, sandbox.actor, `the template ${template}`);
    if (known) {
      await context.parts.trees.remove(dir);
      if (saysNothingNew(made, known)) return { record: known, isNew: false };
    } else {
      await context.parts.trees.remove(place);
      await rename(dir, place);
      await sync(snapshotsDir(context));
    }
    const record = { ...(known ?? made), template, labels };
    await context.commit(
      [{ ...event, actor: call.actor, data: { snapshot: id, template, memory } }],
      [
        ...before.map((other) => ({ put: kinds.snapshot, key: other.id, value: { ...other, template: "" } })),
        { put: kinds.snapshot, key: id, value: record },
      ],
    );
    return { record, isNew: known === undefined };
  });
}

function namesOf(made: SnapshotRecord, known: SnapshotRecord) {
  return { template: made.template || known.template, labels: { ...known.labels, ...made.labels } };
}

function saysNothingNew(made: SnapshotRecord, { template, labels }: SnapshotRecord): boolean {
  const hasLabels = Object.entries(made.labels).every(([key, value]) => labels[key] === value);
  return hasLabels && (made.template === "" || made.template === template);
}

/** What a daemon left that was killed: snapshots that were not complete, or not recorded, or no longer. */
export function sweepSnapshots(context: EngineContext): Promise<void> {
  const dir = snapshotsDir(context);
  const names = namesIn(dir);
  const leftOver = names.filter(
    (name) => name.startsWith(unfinished) || context.store.get(kinds.snapshot, name) === undefined,
  );
  return inTurn(context, async () => {
    for (const name of leftOver)
      await context.parts.trees.remove(`${dir}/${name}`).catch((error) => {
        context.log("warn", "a left-over snapshot could not be removed", { name, error: String(error) });
      });
  });
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    // Nobody has taken one yet.
    return [];
  }
}

async function sync(dir: string): Promise<void> {
  await using opened = await open(dir);
  await opened.sync();
}
