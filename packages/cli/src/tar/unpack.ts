import { constants } from "node:fs";
import { chmod, lstat, mkdir, open, symlink, unlink } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { CaissonError } from "@caisson/client";
import { type Entry, hostile } from "./header.ts";
import { readTar } from "./read.ts";

export interface Unpacked {
  files: number;
  bytes: number;
  /** Members that were left out, each with the reason. */
  skipped: string[];
}

/**
 * Unpacks a tar from a sandbox into a directory of the host. Everything in it is hostile: nothing is
 * written outside the directory, links are made last so that nothing is written through them, and no
 * member gets more than plain permission bits.
 */
export async function unpack(source: AsyncIterable<Uint8Array>, root: string): Promise<Unpacked> {
  const done: Unpacked = { files: 0, bytes: 0, skipped: [] };
  const links: { path: string; name: string; target: string }[] = [];
  const modes: { path: string; mode: number }[] = [];
  const seen = new Set<string>();
  for await (const { entry, content } of readTar(source)) {
    const name = safeName(entry.name);
    const path = name === "" ? root : join(root, name);
    if (entry.type !== "directory") {
      if (seen.has(name)) throw hostile(`the archive has ${entry.name} twice`);
      seen.add(name);
    }
    if (entry.type === "directory") {
      await makeDirectories(root, name);
      modes.push({ path, mode: entry.mode | 0o700 });
    } else if (entry.type === "file") {
      await makeDirectories(root, posix.dirname(name));
      done.bytes += await writeFile(path, entry, content);
      done.files++;
    } else if (entry.type === "symlink") {
      links.push({ path, name, target: entry.target });
    } else {
      done.skipped.push(`${entry.name}: neither a file, a directory nor a link`);
    }
  }
  for (const link of links) {
    if (staysInside(link.name, link.target)) await makeLink(root, link);
    else done.skipped.push(`${link.name}: a link that leaves the directory`);
  }
  for (const { path, mode } of modes.reverse()) await chmod(path, mode);
  return done;
}

/** A member's name without `.`; what is absolute or climbs is refused, not mended. */
function safeName(name: string): string {
  const segments = name.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (name.startsWith("/") || segments.includes("..") || name.includes("\0")) {
    throw hostile(`the archive names ${JSON.stringify(name)}, which lies outside`);
  }
  return segments.join("/");
}

/** Only the first segments may be `..`: what lies above another link is not what its name says. */
function staysInside(name: string, target: string): boolean {
  if (target === "" || target.startsWith("/") || target.includes("\0")) return false;
  const segments = target.split("/").filter((segment) => segment !== "" && segment !== ".");
  const climbs = segments.findIndex((segment) => segment !== "..");
  if (climbs !== -1 && segments.includes("..", climbs)) return false;
  return !posix.normalize(posix.join(posix.dirname(name), target)).startsWith("..");
}

/** Makes directories one by one; a link on the way, whoever made it, is not followed. */
async function makeDirectories(root: string, name: string): Promise<void> {
  let path = root;
  for (const segment of ["", ...name.split("/").filter((part) => part !== "" && part !== ".")]) {
    path = segment === "" ? path : join(path, segment);
    try {
      await mkdir(path, { mode: 0o755, recursive: segment === "" });
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
    }
    if (segment !== "" && !(await lstat(path)).isDirectory()) {
      throw new CaissonError("NOT_A_DIRECTORY", `${path} is in the way and is not a directory`);
    }
  }
}

async function writeFile(path: string, entry: Entry, content: AsyncIterable<Uint8Array>): Promise<number> {
  await removeOld(path);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(path, flags, entry.mode);
  let bytes = 0;
  try {
    for await (const chunk of content) {
      await file.writeFile(chunk);
      bytes += chunk.length;
    }
    await file.chmod(entry.mode);
  } finally {
    await file.close();
  }
  return bytes;
}

async function makeLink(
  root: string,
  { path, name, target }: { path: string; name: string; target: string },
) {
  await makeDirectories(root, dirname(name));
  await removeOld(path);
  await symlink(target, path);
}

/** Makes place for a member: an old file or link goes, a directory stays and is an error. */
async function removeOld(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === "EISDIR" || code === "EPERM") throw new CaissonError("NOT_A_FILE", `${path} is a directory`);
    if (code !== "ENOENT") throw thrown;
  }
}
