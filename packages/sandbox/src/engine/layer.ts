import { existsSync, opendirSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** The directory, in a sandbox's own, that holds what it wrote to its project. */
export const layerName = "layer";

/** Did the sandbox whose directory this is write anything to its project? */
export function hasChanges(dir: string): boolean {
  try {
    // One name is enough: a sandbox may have made a million. In the daemon's own directory, which is local.
    const names = opendirSync(join(dir, layerName, "upper"), { bufferSize: 1 });
    try {
      return names.readSync() !== null;
    } finally {
      names.closeSync();
    }
  } catch (error) {
    // What cannot be read, as when whoever worked inside took that permission from its owner, is not thrown away.
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

/** Is git's index all that it wrote? Any `git status` may do that without having changed anything. */
export async function hasOnlyGitIndex(dir: string): Promise<boolean> {
  const upper = join(dir, layerName, "upper");
  return (await hasOnly(upper, ".git")) && (await hasOnly(join(upper, ".git"), "index"));
}

async function hasOnly(dir: string, name: string): Promise<boolean> {
  if (!existsSync(join(dir, name))) return false;
  return (await readdir(dir).catch(() => [])).length === 1;
}
