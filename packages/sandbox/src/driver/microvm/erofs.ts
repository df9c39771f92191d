import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, open, readdir, rm, stat, utimes } from "node:fs/promises";
import { CaissonError } from "@caisson/contract/errors";
import { newestFirst } from "./keep-template.ts";
import { putInPlace } from "./put-in-place.ts";

export interface ImageTools {
  bwrap: string;
  /** mkfs.erofs */
  mkfs: string;
}

export type Progress = (words: string) => void;

/** Where what becomes the disk is shown to the program that makes it. */
export const source = "/image";
const output = "/output";
const maxBuildMs = 30 * 60_000;
const tellEveryMs = 2000;

/** By which a machine tells its disks apart (guest/src/vm/machine.rs). */
export const diskIds = {
  image: "00000000-0000-0000-0000-000000000000",
  beside: "00000000-0000-0000-0000-000000000001",
};

/** The sandbox's user in a machine (guest/src/vm/chamber.rs): what only its owner may read is for it. */
const owner = 1000;
/** Options of mkfs.erofs for what belongs to the sandbox's user. */
export const owned = [`--force-uid=${owner}`, `--force-gid=${owner}`];
/** Arguments of bubblewrap for a daemon of root's: whoever files belong to, nothing is done but reading them. */
export const readAnything =
  process.getuid?.() === 0 ? ["--cap-drop", "ALL", "--cap-add", "CAP_DAC_READ_SEARCH"] : [];

export interface Disk {
  /** For people: whose disk it is. */
  name: string;
  path: string;
  id: string;
  /** Arguments of bubblewrap that show the program's own libraries, and below `source` what the disk is made from. */
  shown: readonly string[];
  /** Of mkfs.erofs. */
  options: readonly string[];
}

/** Makes a read-only disk for microVMs, unless it is there. It is named after what it is made from. */
export async function makeDisk(tools: ImageTools, disk: Disk, progress: Progress): Promise<void> {
  const { path } = disk;
  if (await stat(path).catch(() => undefined)) return;
  await mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true, mode: 0o700 });
  await removeUnfinished(path.slice(0, path.lastIndexOf("/")));
  const building = `${path}.${process.pid}`;
  await (await open(building, "w")).close();
  try {
    await build(tools, disk, building, progress);
    // A machine's process is somebody else, whatever the daemon's mask.
    await chmod(building, 0o644);
    await putInPlace(building, path);
  } finally {
    await rm(building, { force: true });
  }
}

/** Whether there is such a disk, which is then used: of several, the one that was used longest ago goes first. */
export async function useDisk(path: string): Promise<boolean> {
  if (!(await stat(path).catch(() => undefined))) return false;
  const now = new Date();
  await utimes(path, now, now).catch(() => {});
  return true;
}

/** What daemons left that were killed while they made a disk. */
export async function removeUnfinished(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const maker = /\.erofs\.(\d+)(\.paths)?$/.exec(name)?.[1];
    if (maker !== undefined && !existsSync(`/proc/${maker}`))
      await rm(`${directory}/${name}`, { force: true }).catch(() => {});
  }
}

/** Removes all but the newest of a kind. A machine that still runs from one keeps its file open. */
export async function keepNewest(directory: string, kind: RegExp, count: number): Promise<void> {
  const names = (await readdir(directory)).filter((name) => kind.test(name));
  for (const name of (await newestFirst(directory, names)).slice(count))
    await rm(`${directory}/${name}`, { force: true }).catch(() => {});
}

async function build(tools: ImageTools, disk: Disk, path: string, progress: Progress): Promise<void> {
  const argv = [
    ...["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    ...["--die-with-parent", "--clearenv", "--proc", "/proc", "--dev", "/dev"],
    ...disk.shown,
    ...["--bind", path, output, "--", tools.mkfs],
    // The same bytes for the same files, whoever builds it.
    ...["--quiet", "-x-1", "-U", disk.id],
    ...disk.options,
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
    progress(`${disk.name} for microVMs: ${Math.round(size / 1e6)} MB written`);
  }, tellEveryMs);
  try {
    const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
    if (code !== 0)
      throw new CaissonError("SANDBOX_FAILED", `${disk.name} could not be made: ${words.trim()}`);
  } finally {
    clearInterval(told);
  }
}
