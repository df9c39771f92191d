import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { CaissonError } from "@caisson/contract";

/**
 * The host's tar, because a layer has what Node cannot read or make: devices that stand for removed files, and
 * attributes. Only ever on the daemon's own directories.
 */
export async function tar(args: string[]): Promise<void> {
  const layers = ["--xattrs", "--xattrs-include=user.overlay.*", "--numeric-owner", "--sparse"];
  try {
    await promisify(execFile)("/usr/bin/tar", [...layers, ...args], {
      env: { LC_ALL: "C" },
      maxBuffer: 1 << 20,
    });
  } catch (error) {
    const words = String((error as { stderr?: string }).stderr ?? error).trim();
    throw new CaissonError("SANDBOX_FAILED", `tar: ${words.split("\n").at(-1)?.slice(0, 200)}`, {
      cause: error,
    });
  }
}

/** One hash over the names and bytes of all files of a directory, and some words in front. */
export async function hashFiles(dir: string, words: string): Promise<{ hash: string; size: number }> {
  const hash = createHash("sha256").update(words);
  let size = 0;
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath}/${entry.name}`);
  for (const path of paths.sort()) {
    const { size: bytes } = await stat(path);
    size += bytes;
    hash.update(`\0${path.slice(dir.length)}\0${bytes}\0`);
    await pipeline(createReadStream(path), async (pieces: AsyncIterable<Buffer>) => {
      for await (const piece of pieces) hash.update(piece);
    });
  }
  return { hash: hash.digest("hex"), size };
}
