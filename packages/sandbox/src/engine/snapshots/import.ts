import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, rm, statfs } from "node:fs/promises";
import { CaissonError, type CallContext, rules } from "@caisson/contract";
import { Manner } from "@caisson/contract/keeper";
import type { EngineContext } from "../context.ts";
import { hashFiles } from "./archive.ts";
import { documentName, invalid, maxDocumentBytes, readDocument, wordsOf } from "./document.ts";
import { importedRecord } from "./imported.ts";
import { putInPlace, unfinished } from "./place.ts";
import { parts, type SnapshotRecord, snapshotsDir } from "./record.ts";
import { checkArchive, unpackParts } from "./unpack.ts";

/** Left free on the disk, whatever comes. */
const reserveBytes = 256 << 20;

export interface ImportOptions {
  template: string;
  labels: Record<string, string>;
  /** Take a machine's memory too. */
  memory: boolean;
}

/** Brings in what `exportSnapshot` wrote. Nothing of it counts before all of it was looked at; nothing is left if it is refused. */
export async function importSnapshot(
  context: EngineContext,
  archive: AsyncIterable<Uint8Array>,
  options: ImportOptions,
  call: CallContext,
): Promise<SnapshotRecord> {
  const dir = `${snapshotsDir(context)}/${unfinished}${randomUUID()}`;
  await mkdir(snapshotsDir(context), { recursive: true, mode: 0o700 });
  await mkdir(dir, { mode: 0o700 });
  try {
    await unpackParts(context, dir, bounded(archive, await roomIn(dir), call.signal));
    const document = readDocument(await readWhole(`${dir}/${documentName}`));
    await rm(`${dir}/${documentName}`);
    const { hash, size } = await hashFiles(dir, wordsOf(document));
    if (document.id !== `sn_${hash.slice(0, 32)}`)
      throw invalid("its content is not what its id was made from");
    await checkParts(context, dir, document.memory);
    const record = await importedRecord(context, { document, dir, size }, options, call);
    call.signal.throwIfAborted();
    const event = { type: "snapshot.imported", sandboxId: "" };
    return (await putInPlace(context, dir, record, event, call)).record;
  } catch (error) {
    await context.parts.trees.remove(dir).catch(() => {});
    if (call.signal.aborted) throw new CaissonError("CANCELLED", "the import was given up", { cause: error });
    throw error;
  }
}

/** The archives inside are what a restore can unpack, and the parts are those that belong together. */
async function checkParts(context: EngineContext, dir: string, memory: boolean): Promise<void> {
  const manners = [
    [parts.home, Manner.TREE],
    [parts.project, Manner.TREE],
    [parts.layer, Manner.OVERLAY],
  ] as const;
  const needed = memory ? [parts.machine, `${parts.machine}.json`, `${parts.machine}.memory`] : [parts.home];
  const unfit = memory ? [parts.home, parts.project] : [parts.machine, parts.output];
  if (needed.some((name) => !existsSync(`${dir}/${name}`))) throw invalid("a part of it is missing");
  if (unfit.some((name) => existsSync(`${dir}/${name}`))) throw invalid("it has a part too many");
  for (const [name, manner] of manners)
    if (existsSync(`${dir}/${name}`)) await checkArchive(context, dir, name, manner);
}

/** The bytes as they come, until they are too many, or nobody wants them any more. */
async function* bounded(
  archive: AsyncIterable<Uint8Array>,
  room: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of archive) {
    signal.throwIfAborted();
    bytes += piece.length;
    if (bytes > rules.sizes.snapshot_bytes)
      throw new CaissonError("TOO_LARGE", `a snapshot has at most ${rules.sizes.snapshot_bytes} bytes`);
    if (bytes > room) throw new CaissonError("STORAGE_FULL", "there is no room for the snapshot on the disk");
    yield Buffer.from(piece.buffer, piece.byteOffset, piece.length);
  }
}

async function roomIn(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir);
  return bavail * bsize - reserveBytes;
}

async function readWhole(path: string): Promise<Buffer> {
  const file = await open(path).catch(() => {
    throw invalid("it has no document: it is no snapshot");
  });
  try {
    if ((await file.stat()).size > maxDocumentBytes) throw invalid("its document is too large");
    return await file.readFile();
  } finally {
    await file.close();
  }
}
