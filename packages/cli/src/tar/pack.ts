import { createReadStream, type Stats } from "node:fs";
import { lstat, opendir, readlink } from "node:fs/promises";
import { CaissonError } from "@caisson/client";
import { blockBytes, type Entry, formatHeader, padding } from "./header.ts";

/** A directory of the host as tar, its members named below `name`. Links are kept as links. */
export async function* pack(dir: string, name: string): AsyncGenerator<Uint8Array> {
  yield* packEntry(dir, name);
  yield Buffer.alloc(2 * blockBytes);
}

/** One file of the host as tar. */
export async function* packOne(path: string, name: string): AsyncGenerator<Uint8Array> {
  yield* packEntry(path, name);
  yield Buffer.alloc(2 * blockBytes);
}

async function* packEntry(path: string, name: string): AsyncGenerator<Uint8Array> {
  const stats = await lstat(path);
  if (stats.isDirectory()) {
    yield formatHeader(entryOf(`${name}/`, "directory", stats));
    for await (const child of await opendir(path))
      yield* packEntry(`${path}/${child.name}`, `${name}/${child.name}`);
  } else if (stats.isSymbolicLink()) {
    yield formatHeader({ ...entryOf(name, "symlink", stats), size: 0, target: await readlink(path) });
  } else if (stats.isFile()) {
    yield* packFile(path, entryOf(name, "file", stats));
  }
  // Sockets, FIFOs and devices mean nothing elsewhere.
}

async function* packFile(path: string, entry: Entry): AsyncGenerator<Uint8Array> {
  yield formatHeader(entry);
  let sent = 0;
  if (entry.size > 0) {
    // A file that grows meanwhile is cut at the size that was announced.
    for await (const chunk of createReadStream(path, { end: entry.size - 1, highWaterMark: 256 * 1024 })) {
      sent += (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  }
  if (sent < entry.size) throw new CaissonError("INVALID_INPUT", `${path} became shorter while it was read`);
  yield padding(entry.size);
}

function entryOf(name: string, type: Entry["type"], stats: Stats): Entry {
  const size = type === "file" ? stats.size : 0;
  return { name, type, size, mode: stats.mode & 0o777, modified: stats.mtimeMs / 1000, target: "" };
}
