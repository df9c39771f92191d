import { readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import { hasChanges, layerName } from "./layer.ts";

/** Frees what an ended sandbox held; its kept output stays. */
export async function cleanUp(context: EngineContext, box: Box): Promise<void> {
  try {
    await Promise.all([...box.processes.values()].map((proc) => proc.log.close()));
    await box.cgroup?.remove();
    if (box.record.place) await removeAllButKept(context, context.dirOf(box.record.place));
  } catch (error) {
    context.log("warn", "an ended sandbox left something behind", { sandbox: box.id, error: String(error) });
  }
}

/** Removes everything in an ended sandbox's directory but its output and what it changed in the project. */
export async function removeAllButKept(context: EngineContext, dir: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(dir);
  } catch {
    return;
  }
  const kept = new Set(["output"]);
  if (names.includes(layerName) && (await hasChanges(dir))) {
    kept.add(layerName);
    await context.parts.trees.remove(join(dir, layerName, "work"));
  }
  for (const name of names) {
    if (!kept.has(name)) await context.parts.trees.remove(join(dir, name));
  }
  if (!names.some((name) => kept.has(name))) await rmdir(dir).catch(() => {});
}
