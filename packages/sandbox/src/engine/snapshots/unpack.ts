// The archives of a snapshot that strangers may have written: unpacked and checked by a helper that can write nowhere but
// where its result goes.
import { createReadStream } from "node:fs";
import { chmod, chown, readdir, rm } from "node:fs/promises";
import { rules } from "@caisson/contract";
import { type ImageDone, Manner } from "@caisson/contract/keeper";
import { imageUid, isRoot } from "../../images/places.ts";
import { runImageJob } from "../../images/worker.ts";
import type { EngineContext } from "../context.ts";
import { layerName } from "../layer.ts";
import { invalid } from "./document.ts";

/** Members of an exported snapshot: a few, and the pieces of what commands have printed. */
const maxParts = 10_000n;

const limits = {
  maxBytes: BigInt(rules.sizes.snapshot_bytes),
  maxFiles: BigInt(rules.sizes.image_files),
};

const partNames =
  /^(snapshot\.json|home\.tar|project\.tar|layer\.tar|machine|machine\.json|machine\.memory|output\/p[1-9]\d{0,8}\/0\d{15})$/;

/** Unpacks an exported snapshot into an empty directory: nothing but the files that a snapshot has, the daemon's own. */
export async function unpackParts(
  context: EngineContext,
  dir: string,
  archive: AsyncIterable<Buffer>,
): Promise<void> {
  const uid = isRoot() ? imageUid : 0;
  if (uid !== 0) await chown(dir, uid, uid);
  const unpack = { maxBytes: limits.maxBytes, maxFiles: maxParts, manner: Manner.FILES };
  await runImageJob(
    context.parts.guest,
    { directory: dir, uid, job: { case: "unpack", value: unpack } },
    archive,
  );
  await own(dir, uid);
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = `${entry.parentPath}/${entry.name}`;
    const name = path.slice(dir.length + 1);
    if (entry.isFile() && !partNames.test(name))
      throw invalid("it holds a file that is none of a snapshot's");
    await own(path, uid);
    await chmod(path, entry.isFile() ? 0o600 : 0o700);
  }
}

async function own(path: string, uid: number): Promise<void> {
  if (uid !== 0) await chown(path, 0, 0);
}

/** Would this archive be unpacked? Reads it to its end, writes nothing. */
export function checkArchive(
  context: EngineContext,
  dir: string,
  name: string,
  manner: Manner,
): Promise<ImageDone> {
  const job = { case: "check" as const, value: { ...limits, manner } };
  const archive = createReadStream(`${dir}/${name}`) as AsyncIterable<Buffer>;
  return runImageJob(context.parts.guest, { directory: dir, uid: isRoot() ? imageUid : 0, job }, archive);
}

/** Puts what a stranger's sandbox wrote to its project into the layer of a new one, owned by whoever the layer belongs to. */
export async function unpackLayer(
  context: EngineContext,
  archive: string,
  sandboxDir: string,
): Promise<void> {
  const directory = `${sandboxDir}/${layerName}`;
  await rm(`${directory}/copied`, { force: true });
  const job = { case: "unpack" as const, value: { ...limits, manner: Manner.OVERLAY } };
  const content = createReadStream(archive) as AsyncIterable<Buffer>;
  await runImageJob(context.parts.guest, { directory, uid: 0, job }, content);
}
