import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { realpath, rm, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
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
import { fingerprintReadable } from "./root-image.ts";

/** Parts of the host that are shown beside an image, at their own paths, and what says that they are still the same. */
export interface Beside {
  paths: readonly string[];
  fingerprint: string;
}

/** They are large: those of before a change are of use for as long as it takes to go back. */
const keptDisks = 2;

export const besideImage = /^beside-[0-9a-f]{32}\.erofs$/;

/** Looks at every file of them. */
export async function lookBeside(paths: readonly string[]): Promise<Beside> {
  const trees = await Promise.all(paths.map(async (path) => fingerprintReadable(await realpath(path))));
  return { paths, fingerprint: hash("sha256", JSON.stringify([paths, trees])).slice(0, 32) };
}

/**
 * A copy of them as a second read-only disk for microVMs: each by its number, and a list of their paths (guest/src/vm/chamber.rs).
 * Returns its path.
 */
export async function makeBeside(
  tools: ImageTools,
  directory: string,
  { paths, fingerprint }: Beside,
  progress: Progress,
): Promise<string> {
  const path = `${directory}/beside-${fingerprint}.erofs`;
  if (await useDisk(path)) return path;
  progress("copying toolchains onto a disk for microVMs (once, and after each change of them)");
  const list = `${path}.${process.pid}.paths`;
  try {
    await writeFile(list, paths.map((one) => `${one}\0`).join(""));
    const places = await Promise.all(paths.map((one) => realpath(one)));
    const closed = await Promise.all(places.map(unreadable));
    const programs = (await readHostRoot()).flatMap((entry) => showEntry(entry, ""));
    const binds = places.flatMap((place, number) => ["--ro-bind", place, `${source}/${number}`]);
    const shown = [...programs, "--ro-bind", list, `${source}/paths`, ...binds, ...readAnything];
    const excluded = closed.flatMap((names, number) =>
      names.map((name) => `--exclude-path=${number}/${name}`),
    );
    const options = [...owned, ...excluded];
    await makeDisk(tools, { name: "toolchains", path, id: diskIds.beside, shown, options }, progress);
  } finally {
    await rm(list, { force: true });
  }
  await keepNewest(directory, besideImage, keptDisks);
  return path;
}

/** What the daemon itself may not read would end the copying; no command could use it either. */
async function unreadable(place: string): Promise<string[]> {
  const closed = ["!", "-type", "l", "(", "!", "-readable", "-o", "-type", "d", "!", "-executable", ")"];
  const find = promisify(execFile)("find", [place, "-xdev", ...closed, "-prune", "-printf", "%P\\0"], {
    maxBuffer: 1 << 24,
  });
  const { stdout } = await find.catch((failed: { stdout?: string }) => ({ stdout: failed.stdout ?? "" }));
  return stdout.split("\0").filter(Boolean);
}
