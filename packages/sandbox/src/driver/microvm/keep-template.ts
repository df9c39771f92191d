import { existsSync } from "node:fs";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";

/** Where a template is made until it is whole: daemons that share a store may make the same one at a time. */
export function buildingPlace(directory: string): string {
  return `${directory}.${process.pid}`;
}

/** Of a machine of another size than the usual: there is one of each size, and any other is of a host that was. */
export function nameOfSize(bytes: number, key: string): string {
  return `${bytes / 1024 / 1024}-${key}`;
}

function sizeIn(name: string): string | undefined {
  return /^(\d+)-/.exec(name)?.[1];
}

/** Puts a template that is whole in its place, unless another daemon was quicker; beyond so many the oldest go. */
export async function keepTemplate(directory: string, count = 1): Promise<void> {
  const building = buildingPlace(directory);
  const isThere = await stat(directory).catch(() => undefined);
  if (isThere) await rm(building, { recursive: true, force: true });
  else await rename(building, directory);
  await removeOthers(directory, count);
}

/** Machines that were copied from one do not need it any more. */
async function removeOthers(directory: string, count: number): Promise<void> {
  const templates = dirname(directory);
  const names = (await readdir(templates)).filter(
    (name) => name !== basename(directory) && !isBeingMade(name),
  );
  const size = sizeIn(basename(directory));
  const others = names.filter((name) => size === undefined || sizeIn(name) !== size);
  const kept = (await newestFirst(templates, others)).slice(0, count - 1);
  for (const name of names.filter((name) => !kept.includes(name)))
    await rm(`${templates}/${name}`, { recursive: true, force: true });
}

/** By when they were used last. */
export async function newestFirst(folder: string, names: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    names.map(async (name) => {
      // One that was left unfinished is older than any.
      const isWhole = !/\.\d+$/.test(name);
      const status = await stat(`${folder}/${name}`).catch(() => undefined);
      return { name, at: isWhole ? (status?.mtimeMs ?? 0) : 0 };
    }),
  );
  return found.sort((one, other) => other.at - one.at).map(({ name }) => name);
}

function isBeingMade(name: string): boolean {
  const maker = /\.(\d+)$/.exec(name)?.[1];
  return maker !== undefined && existsSync(`/proc/${maker}`);
}
