import { execFile, spawn } from "node:child_process";
import { hash } from "node:crypto";
import { chmod, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { CaissonError } from "@caisson/contract/errors";
import { type HostEntry, readHostRoot } from "../bubblewrap/host-root.ts";
import { putInPlace } from "./put-in-place.ts";

export interface ImageTools {
  bwrap: string;
  /** mkfs.erofs */
  mkfs: string;
}

export type Progress = (words: string) => void;

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

const source = "/image";
const output = "/output";
const maxBuildMs = 30 * 60_000;

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
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const building = `${path}.${process.pid}`;
  await (await open(building, "w")).close();
  try {
    progress("making the host's image for microVMs (once, and after each upgrade of the host)");
    await build(tools, entries, building, progress);
    // A machine's process is somebody else, whatever the daemon's mask.
    await chmod(building, 0o644);
    await putInPlace(building, path);
  } finally {
    await rm(building, { force: true });
  }
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

async function build(
  tools: ImageTools,
  entries: readonly HostEntry[],
  path: string,
  progress: Progress,
): Promise<void> {
  const excluded = [...leftOut, ...(await unreadable())];
  const argv = [
    ...["--unshare-all", "--die-with-parent", "--clearenv", "--proc", "/proc", "--dev", "/dev"],
    ...entries.flatMap((entry) => shown(entry, "")),
    ...entries.flatMap((entry) => shown(entry, source)),
    ...["--bind", path, output, "--", tools.mkfs],
    // The same bytes for the same files, whoever builds it.
    ...["--quiet", "--all-root", "-x-1", "-U", "00000000-0000-0000-0000-000000000000"],
    ...excluded.map((relative) => `--exclude-path=${relative}`),
    ...[output, source],
  ];
  const child = spawn(tools.bwrap, argv, {
    stdio: ["ignore", "ignore", "pipe"],
    env: {},
    timeout: maxBuildMs,
  });
  let words = "";
  child.stderr.on("data", (bytes: Buffer) => {
    words = (words + bytes.toString()).slice(-500);
  });
  const told = setInterval(async () => {
    const size = (await stat(path).catch(() => undefined))?.size ?? 0;
    progress(`the host's image for microVMs: ${Math.round(size / 1e6)} MB written`);
  }, 2000);
  try {
    const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
    if (code !== 0) {
      throw new CaissonError("SANDBOX_FAILED", `the host's image could not be made: ${words.trim()}`);
    }
  } finally {
    clearInterval(told);
  }
}

function shown(entry: HostEntry, below: string): string[] {
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
