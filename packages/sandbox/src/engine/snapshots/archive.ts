import { execFile } from "node:child_process";
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open, readdir, stat } from "node:fs/promises";
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
    await hashPieces(hash, path);
  }
  return { hash: hash.digest("hex"), size };
}

const zeros = Buffer.alloc(1024 * 1024);

/** Each piece with its place, but for those of zeros: a machine's memory, which is nearly all zeros, has gigabytes. */
async function hashPieces(hash: Hash, path: string): Promise<void> {
  await using file = await open(path);
  const room = Buffer.allocUnsafe(zeros.length);
  for (let at = 0; ; ) {
    const piece = room.subarray(0, await fill(file, room, at));
    if (piece.length === 0) return;
    if (!piece.equals(zeros.subarray(0, piece.length))) hash.update(`\0${at}\0`).update(piece);
    at += piece.length;
  }
}

/** As much as there is room for, or is left: the same pieces of the same file, however it is read. */
async function fill(file: FileHandle, room: Buffer, at: number): Promise<number> {
  let length = 0;
  while (length < room.length) {
    const { bytesRead } = await file.read(room, length, room.length - length, at + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return length;
}
