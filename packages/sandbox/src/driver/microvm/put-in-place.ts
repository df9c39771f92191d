import { rename, rm, stat } from "node:fs/promises";

/** Gives a finished file its name. Named after what it was made from, it is as good from whoever else was quicker. */
export async function putInPlace(finished: string, path: string): Promise<void> {
  try {
    await rename(finished, path);
  } catch (error) {
    await rm(finished, { force: true });
    if (!(await stat(path).catch(() => undefined))) throw error;
  }
}
