import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Box } from "./box.ts";
import { changedAnything } from "./changes.ts";
import type { EngineContext } from "./context.ts";
import { hasChanges, layerName } from "./layer.ts";

/** Frees what an ended sandbox held; its kept output stays. */
export async function cleanUp(context: EngineContext, box: Box): Promise<void> {
  try {
    await Promise.all([...box.processes.values()].map((proc) => proc.log.close()));
    await box.cgroup?.remove();
    if (!box.record.place) return;
    const dir = context.dirOf(box.record.place);
    if (!(await changedAnything(context, box.record))) await context.parts.trees.remove(join(dir, layerName));
    await removeAllButKept(context, dir);
  } catch (error) {
    context.log("warn", "an ended sandbox left something behind", { sandbox: box.id, error: String(error) });
  }
}

/** Removes everything in an ended sandbox's directory but its output and what it changed in the project. */
export async function removeAllButKept(context: EngineContext, dir: string): Promise<void> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  const kept = new Set(["output"]);
  if (hasChanges(dir)) {
    kept.add(layerName);
    await context.parts.trees.remove(join(dir, layerName, "work"));
  }
  for (const entry of entries) {
    if (kept.has(entry.name)) continue;
    // Directories may hold what a sandbox made; files here are the daemon's own.
    if (entry.isDirectory()) await context.parts.trees.remove(join(dir, entry.name));
    else await rm(join(dir, entry.name), { force: true });
  }
  if (!entries.some(({ name }) => kept.has(name))) await rmdir(dir).catch(() => {});
}
