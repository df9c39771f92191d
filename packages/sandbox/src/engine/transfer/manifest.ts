import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "@caisson/contract";
import { FileEntry_Type } from "@caisson/contract/link";
import type { GuestFiles } from "../../link/guest.ts";

/** What a project holds inside: each name, as its bytes in Latin-1, with what tells one state of it from another. */
export type Manifest = Map<string, string>;

/** More names than this are not a project. */
const maxNames = 1_000_000;

/** Looks at a project inside. Sockets, FIFOs and devices are left out: they are nothing that could be applied. */
export async function readManifest(files: GuestFiles, dir: string, signal: AbortSignal): Promise<Manifest> {
  const manifest: Manifest = new Map();
  for await (const { entries } of files.list(dir, true, signal)) {
    for (const { path, type, mode, etag } of entries) {
      if (type === FileEntry_Type.SPECIAL || type === FileEntry_Type.UNSPECIFIED) continue;
      // A directory changes with every name in it; only its own mode is of interest.
      const state = type === FileEntry_Type.DIRECTORY ? `d${mode}` : `${type}-${mode}-${etag}`;
      manifest.set(Buffer.from(path).toString("latin1"), state);
    }
    if (manifest.size > maxNames)
      throw new CaissonError("TOO_LARGE", `the project holds more than ${maxNames} names`);
  }
  return manifest;
}

/** What the daemon's copy has to lose and to get in order to be like the project inside. */
export function compareManifests(before: Manifest, now: Manifest): { remove: string[]; fetch: string[] } {
  const kindOf = (state: string | undefined) => state?.[0];
  const gone = [...before.keys()].filter((name) => kindOf(before.get(name)) !== kindOf(now.get(name)));
  // What lies in a directory that goes, goes with it.
  const going = new Set(gone);
  const remove = gone.filter((name) => !parentsOf(name).some((parent) => going.has(parent)));
  const removed = new Set(remove);
  const fetch = [...now.keys()].filter(
    (name) =>
      before.get(name) !== now.get(name) ||
      removed.has(name) ||
      parentsOf(name).some((parent) => removed.has(parent)),
  );
  return { remove, fetch: fetch.sort() };
}

export function parentsOf(name: string): string[] {
  const parents: string[] = [];
  for (let end = name.lastIndexOf("/"); end > 0; end = name.lastIndexOf("/", end - 1))
    parents.push(name.slice(0, end));
  return parents;
}

/** Kept beside the copy, so that a later daemon knows what the copy is of. */
const fileName = "manifest.json";

export async function storeManifest(layerDir: string, manifest: Manifest): Promise<void> {
  await writeFile(join(layerDir, fileName), JSON.stringify([...manifest]), { mode: 0o600 });
}

/** Nothing is known when it is not there: then everything is fetched. */
export async function loadManifest(layerDir: string): Promise<Manifest> {
  try {
    return new Map(JSON.parse(await readFile(join(layerDir, fileName), "utf8")));
  } catch {
    return new Map();
  }
}
