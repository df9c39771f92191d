import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { type HostEntry, readHostRoot } from "../bubblewrap/host-root.ts";
import { diskIds, type ImageTools, makeDisk, type Progress, source } from "./erofs.ts";

/** Large, and nothing that runs needs them: documents, translations, drivers of machines, debugging symbols. */
const leftOut = [
  "usr/lib/debug",
  "usr/lib/firmware",
  "usr/lib/modules",
  "usr/share/doc",
  "usr/share/help",
  "usr/share/info",
  "usr/share/locale",
  "usr/share/man",
  "usr/src",
];

/**
 * The host's programs and libraries as one read-only file system for microVMs. Named after what it was made from: after
 * an upgrade of the host the name is another one, and it is made anew. Returns its path.
 */
export async function makeHostImage(
  tools: ImageTools,
  directory: string,
  progress: Progress,
): Promise<string> {
  const entries = await readHostRoot();
  const path = `${directory}/host-${await fingerprint(entries)}.erofs`;
  if (await stat(path).catch(() => undefined)) return path;
  progress("making the host's image for microVMs (once, and after each upgrade of the host)");
  const excluded = [...leftOut, ...(await unreadable())].map((relative) => `--exclude-path=${relative}`);
  const all = ["", source].flatMap((below) => entries.flatMap((entry) => showEntry(entry, below)));
  const shown = ["--unshare-user-try", ...all];
  const options = ["--all-root", ...excluded];
  await makeDisk(tools, { name: "the host's image", path, id: diskIds.image, shown, options }, progress);
  await removeOthers(directory, path);
  return path;
}

/** Packages installed, and directories that change when something is put beside them by hand. */
export async function fingerprint(entries: readonly HostEntry[]): Promise<string> {
  const roots = entries.flatMap((entry) => (entry.kind === "bind" ? [entry.source] : []));
  const databases = [
    "/var/lib/dpkg/status",
    "/var/lib/rpm",
    "/usr/lib/sysimage/rpm",
    "/lib/apk/db/installed",
  ];
  const local = ["/usr/local/bin", "/usr/local/lib", "/usr/bin", "/usr/lib", "/usr/sbin", "/usr/share"];
  const looked = await Promise.all(
    [...roots, ...databases, ...local].map(async (path) => {
      const found = await stat(path).catch(() => undefined);
      return `${path} ${found?.mtimeMs} ${found?.isFile() ? found.size : ""}`;
    }),
  );
  return hash("sha256", JSON.stringify([entries, leftOut, looked])).slice(0, 32);
}

/** A part of the host's root, below some directory of bubblewrap's. */
export function showEntry(entry: HostEntry, below: string): string[] {
  const place = `${below}${entry.path}`;
  if (entry.kind === "symlink") return ["--symlink", entry.target, place];
  return ["--dir", dirname(place), "--ro-bind", entry.source, place];
}

/** What not everybody may read: set-uid helpers and rules of services. A sandbox could not use them either. */
async function unreadable(): Promise<string[]> {
  const closed = [
    "!",
    "-type",
    "l",
    "(",
    "!",
    "-perm",
    "-004",
    "-o",
    "-type",
    "d",
    "!",
    "-perm",
    "-005",
    ")",
  ];
  const find = promisify(execFile)("find", ["/usr", "-xdev", ...closed, "-prune", "-print0"], {
    maxBuffer: 1 << 24,
  });
  const { stdout } = await find.catch((failed: { stdout?: string }) => ({ stdout: failed.stdout ?? "" }));
  return stdout
    .split("\0")
    .filter(Boolean)
    .map((path) => path.slice(1));
}

/** Images of an older host; a machine that still runs from one keeps its file open. */
async function removeOthers(directory: string, path: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const other = `${directory}/${name}`;
    if (/^host-[0-9a-f]{32}\.erofs$/.test(name) && other !== path)
      await rm(other, { force: true }).catch(() => {});
  }
}
