import { readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";

/** Frees what an ended sandbox held; its kept output stays. */
export async function cleanUp(context: EngineContext, box: Box): Promise<void> {
  try {
    await Promise.all([...box.processes.values()].map((proc) => proc.log.close()));
    await box.cgroup?.remove();
    if (box.record.place) await removeAllButOutput(context, context.dirOf(box.record.place));
  } catch (error) {
    context.log("warn", "an ended sandbox left something behind", { sandbox: box.id, error: String(error) });
  }
}

/** Removes everything in a sandbox's directory but its output, and the directory itself if nothing is left. */
export async function removeAllButOutput(context: EngineContext, dir: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(dir);
  } catch {
    return;
  }
  for (const name of names) {
    if (name !== "output") await context.parts.trees.remove(join(dir, name));
  }
  if (!names.includes("output")) await rmdir(dir).catch(() => {});
}
