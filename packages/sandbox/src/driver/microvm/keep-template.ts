import { existsSync } from "node:fs";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";

/** Where a template is made until it is whole: daemons that share a store may make the same one at a time. */
export function buildingPlace(directory: string): string {
  return `${directory}.${process.pid}`;
}

/** Puts a template that is whole in its place, unless another daemon was quicker; those of an older host or build go. */
export async function keepTemplate(directory: string): Promise<void> {
  const building = buildingPlace(directory);
  const isThere = await stat(directory).catch(() => undefined);
  if (isThere) await rm(building, { recursive: true, force: true });
  else await rename(building, directory);
  await removeOthers(directory);
}

/** Machines that were copied from one do not need it any more. */
async function removeOthers(directory: string): Promise<void> {
  const templates = dirname(directory);
  for (const name of await readdir(templates)) {
    const maker = /\.(\d+)$/.exec(name)?.[1];
    const isBeingMade = maker !== undefined && existsSync(`/proc/${maker}`);
    if (name !== basename(directory) && !isBeingMade) {
      await rm(`${templates}/${name}`, { recursive: true, force: true });
    }
  }
}
