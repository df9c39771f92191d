import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { promisify } from "node:util";
import { CaissonError } from "@caisson/contract/errors";
import { readHostRoot } from "../bubblewrap/host-root.ts";
import {
  diskIds,
  type ImageTools,
  keepNewest,
  makeDisk,
  owned,
  type Progress,
  readAnything,
  source,
  useDisk,
} from "./erofs.ts";
import { showEntry } from "./host-image.ts";
import type { ImageRoot } from "./template.ts";

/** Disks of images that are kept. */
const keptDisks = 4;
const maxListing = 1 << 28;

export const rootImage = /^root-[0-9a-f]{32}\.erofs$/;

/** Changes with every file in a directory, by what `stat` says of it. */
export async function fingerprintTree(root: string): Promise<string> {
  try {
    return hashListing((await listTree(root)).stdout);
  } catch (cause) {
    throw new CaissonError("IMAGE_NOT_FOUND", `${root} cannot be read by the daemon`, { cause });
  }
}

/** The same as far as the daemon may read it. */
export async function fingerprintReadable(root: string): Promise<string> {
  const { stdout } = await listTree(root).catch((failed: { stdout?: string }) => failed);
  return hashListing(stdout ?? "");
}

function listTree(root: string): Promise<{ stdout: string }> {
  const find = ["-xdev", "-printf", "%P\\0%i %m %s %T@ %l\\0"];
  return promisify(execFile)("find", [root, ...find], { maxBuffer: maxListing });
}

function hashListing(listing: string): string {
  // `find` lists a directory in whatever order its file system has.
  const entries = listing.split("\0");
  const lines = entries.flatMap((name, index) => (index % 2 === 0 ? [`${name}\0${entries[index + 1]}`] : []));
  return hash("sha256", lines.sort().join("\n")).slice(0, 32);
}

/** The root of an image as a read-only disk for microVMs. Returns its path. */
export async function makeRootImage(
  tools: ImageTools,
  directory: string,
  { path: root, fingerprint }: ImageRoot,
  progress: Progress,
): Promise<string> {
  const path = `${directory}/root-${fingerprint}.erofs`;
  if (await useDisk(path)) return path;
  progress("making an image's disk for microVMs (once for each image)");
  const programs = (await readHostRoot()).flatMap((entry) => showEntry(entry, ""));
  const shown = [...programs, "--ro-bind", root, source, ...readAnything];
  const disk = { name: "the image's disk", path, id: diskIds.image, shown, options: owned };
  await makeDisk(tools, disk, progress);
  await keepNewest(directory, rootImage, keptDisks);
  return path;
}
