import { constants } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { HostEntry } from "../bubblewrap/host-root.ts";

/** The sandbox's own, whatever an image has there. */
const ownPlaces = new Set(["/.caisson", "/dev", "/home", "/proc", "/run", "/sys", "/tmp", "/var/tmp"]);
/** What the guest writes into /etc. */
const ownFiles = new Set(
  ["group", "gitconfig", "hostname", "hosts", "machine-id", "nsswitch.conf", "passwd", "resolv.conf"].map(
    (name) => `/etc/${name}`,
  ),
);
/** Places in which the sandbox has something too, so that what is in them is shown one by one. */
const shared = new Set(["/etc", "/var"]);
/** A mount of its own is dearer than a copy of something small. */
const maxCopyBytes = 256 * 1024;

/** How the root of an image appears: large things by mounts, a few small files of /etc as copies. */
export type ImageEntry = HostEntry | { path: string; kind: "copy"; content: Buffer; mode: number };

/** Looks at the root of an image of the store, which nobody but the daemon can change. */
export async function readImageRoot(root: string, at = "/"): Promise<ImageEntry[]> {
  const entries: ImageEntry[] = [];
  for (const name of (await readdir(join(root, at))).sort()) {
    const path = join(at, name);
    if (ownPlaces.has(path) || ownFiles.has(path)) continue;
    if (shared.has(path) && (await lstat(join(root, path))).isDirectory())
      entries.push(...(await readImageRoot(root, path)));
    else entries.push(...(await readEntry(root, path)));
  }
  return entries;
}

async function readEntry(root: string, path: string): Promise<ImageEntry[]> {
  const source = join(root, path);
  const status = await lstat(source);
  if (status.isSymbolicLink()) return [{ path, kind: "symlink", target: await readlink(source) }];
  if (status.isDirectory()) return [{ path, kind: "bind", source }];
  if (!status.isFile()) return [];
  if (status.size > maxCopyBytes) return [{ path, kind: "bind", source }];
  await using file = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW);
  return [{ path, kind: "copy", content: await file.readFile(), mode: status.mode & 0o755 }];
}
