import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";

/** Removes a directory, also where directories in it are closed to their own owner, as an overlay's work directory is. */
export function removeTree(dir: string): void {
  try {
    rmSync(dir, { recursive: true, force: true });
  } catch {
    spawnSync("chmod", ["-R", "u+rwX", dir]);
    rmSync(dir, { recursive: true, force: true });
  }
}
