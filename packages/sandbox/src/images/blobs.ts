// Where the parts of an image lie: in a directory, or in a tar archive that is read in place.
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { wrong } from "./config.ts";
import { indexArchive, type Part, wholePart } from "./tar-index.ts";

/** A JSON document of an image is never larger. */
const maxDocument = 4 << 20;

/** The files of an image by name. */
export interface Blobs {
  has(name: string): Promise<boolean>;
  /** A small file. */
  read(name: string): Promise<Buffer>;
  stream(name: string): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/** An OCI layout: a directory. Its names are checked by whoever asks; links are not followed. */
export function blobsOfDirectory(dir: string): Blobs {
  const openFile = async (name: string) => {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await open(join(dir, name), flags).catch(() => {
      throw wrong(`it has no ${name}`);
    });
    const stats = await file.stat();
    if (stats.isFile()) return { file, size: stats.size };
    await file.close();
    throw wrong(`${name} is not a file`);
  };
  return {
    has: (name) =>
      openFile(name).then(
        ({ file }) => file.close().then(() => true),
        () => false,
      ),
    async read(name) {
      const { file, size } = await openFile(name);
      try {
        return await readPart(file, wholePart(0, size), name);
      } finally {
        await file.close();
      }
    },
    async *stream(name) {
      const { file, size } = await openFile(name);
      try {
        yield* streamPart(file, wholePart(0, size));
      } finally {
        await file.close();
      }
    },
    close: async () => {},
  };
}

/** An archive: its members are read where they are. */
export async function blobsOfArchive(path: string): Promise<Blobs> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const index = await indexArchive(file);
    const part = (name: string) => {
      const found = index.get(name);
      if (found) return found;
      throw wrong(`it has no ${name}`);
    };
    return {
      has: async (name) => index.has(name),
      read: async (name) => readPart(file, part(name), name),
      stream: (name) => streamPart(file, part(name)),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function readPart(file: FileHandle, part: Part, name: string) {
  if (part.size > maxDocument) throw wrong(`${name} is too large`);
  const pieces: Buffer[] = [];
  for await (const piece of streamPart(file, part)) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function* streamPart(file: FileHandle, { size, pieces }: Part): AsyncGenerator<Buffer> {
  let at = 0;
  for (const piece of pieces) {
    yield* zeros(piece.at - at);
    yield* streamPiece(file, piece.offset, piece.size);
    at = piece.at + piece.size;
  }
  yield* zeros(size - at);
}

const step = 1 << 20;

function* zeros(count: number): Generator<Buffer> {
  for (let left = count; left > 0; left -= step) yield Buffer.alloc(Math.min(step, left));
}

async function* streamPiece(file: FileHandle, offset: number, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    const buffer = Buffer.allocUnsafe(Math.min(step, size - at));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, offset + at);
    if (bytesRead === 0) throw wrong("it is cut off");
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
