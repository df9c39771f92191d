import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** The directory, in a sandbox's own, that holds what it wrote to its project. */
export const layerName = "layer";

/** Did the sandbox whose directory this is write anything to its project? */
export async function hasChanges(dir: string): Promise<boolean> {
  const upper = join(dir, layerName, "upper");
  if (!existsSync(upper)) return false;
  try {
    return (await readdir(upper)).length > 0;
  } catch (error) {
    // Whoever worked inside may have taken the permission to read it from its owner; that is a change.
    if ((error as NodeJS.ErrnoException).code === "EACCES") return true;
    throw error;
  }
}
