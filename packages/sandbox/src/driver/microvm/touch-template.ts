import { utimes } from "node:fs/promises";
import { dirname } from "node:path";

/** A template, by its file of devices, is used: of several, the one that was used longest ago goes first. */
export async function touchTemplate(state: string): Promise<void> {
  const now = new Date();
  await utimes(dirname(state), now, now).catch(() => {});
}
