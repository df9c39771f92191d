import { existsSync, readdirSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** The directory, in a sandbox's own, that holds what it wrote to its project. */
export const layerName = "layer";

/** A directory's size grows with its entries, which may be a million: a larger one is not read. */
const emptyBytes = 64 * 1024;

/** Did the sandbox whose directory this is write anything to its project? In the daemon's own directory, which is local. */
export function hasChanges(dir: string): boolean {
  const upper = join(dir, layerName, "upper");
  try {
    return statSync(upper).size > emptyBytes || readdirSync(upper).length > 0;
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
