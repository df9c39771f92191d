import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { readdir, rm, stat, utimes } from "node:fs/promises";
import { promisify } from "node:util";
import { CaissonError } from "@caisson/contract/errors";
import { readHostRoot } from "../bubblewrap/host-root.ts";
import { type ImageTools, makeDisk, type Progress, source } from "./erofs.ts";
import { showEntry } from "./host-image.ts";
import { newestFirst } from "./keep-template.ts";
import type { ImageRoot } from "./template.ts";

/** Disks of images that are kept. */
const keptDisks = 4;
/** The sandbox's user in a machine (guest/src/vm/chamber.rs): what only its owner may read of an image is for it. */
const owner = 1000;
const maxListing = 1 << 28;

export function isRootImage(name: string): boolean {
  return /^root-[0-9a-f]{32}\.erofs$/.test(name);
}

/** Changes with every file in a directory, by what `stat` says of it. */
export async function fingerprintTree(root: string): Promise<string> {
  const find = ["-xdev", "-printf", "%P\\0%i %m %s %T@ %l\\0"];
  try {
    const { stdout } = await promisify(execFile)("find", [root, ...find], { maxBuffer: maxListing });
    // `find` lists a directory in whatever order its file system has.
    const entries = stdout.split("\0");
    const lines = entries.flatMap((name, index) =>
      index % 2 === 0 ? [`${name}\0${entries[index + 1]}`] : [],
    );
    return hash("sha256", lines.sort().join("\n")).slice(0, 32);
  } catch (cause) {
    throw new CaissonError("IMAGE_NOT_FOUND", `${root} cannot be read by the daemon`, { cause });
  }
}

/** The root of an image as a read-only disk for microVMs. Returns its path. */
export async function makeRootImage(
  tools: ImageTools,
  directory: string,
  { path: root, fingerprint }: ImageRoot,
  progress: Progress,
): Promise<string> {
  const path = `${directory}/root-${fingerprint}.erofs`;
  if (await stat(path).catch(() => undefined)) {
    const now = new Date();
    await utimes(path, now, now).catch(() => {});
    return path;
  }
  progress("making an image's disk for microVMs (once for each image)");
  const programs = (await readHostRoot()).flatMap((entry) => showEntry(entry, ""));
  const shown = [...programs, "--ro-bind", root, source, ...(process.getuid?.() === 0 ? readAnything : [])];
  const options = [`--force-uid=${owner}`, `--force-gid=${owner}`];
  await makeDisk(tools, { name: "the image's disk", path, shown, options }, progress);
  await removeOldest(directory);
  return path;
}

/** Under a daemon of root's the files of images are nobody's. */
const readAnything = ["--cap-drop", "ALL", "--cap-add", "CAP_DAC_READ_SEARCH"];

/** A machine that still runs from one keeps its file open. */
async function removeOldest(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter(isRootImage);
  for (const name of (await newestFirst(directory, names)).slice(keptDisks))
    await rm(`${directory}/${name}`, { force: true }).catch(() => {});
}
