import { createWriteStream } from "node:fs";
import { open, rename, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { CaissonError, rules } from "@caisson/contract";
import { type Blobs, blobsOfArchive, blobsOfDirectory } from "./blobs.ts";
import { wrong } from "./config.ts";
import { checked, uncompressed } from "./layer-stream.ts";
import { type FoundImage, type FoundLayer, findImage } from "./manifest.ts";
import { type ImagePlaces, imageUid, isRoot } from "./places.ts";
import type { ImageRecord, LayerRecord } from "./record.ts";
import { runImageJob } from "./worker.ts";

export interface Importing {
  /** The guest binary, which unpacks. */
  guest: string;
  places: ImagePlaces;
  /** Where a Docker engine is asked; throws with a clear word. */
  engineSocket(): string;
  /** Layers that are there already, by digest. */
  known(digest: string): LayerRecord | undefined;
  progress(step: string, layersDone: number, layers: number, bytes: number): void;
}

export type ImageSource = { path: string } | { docker: string };

/** Brings an image into the store; nothing refers to it yet. */
export async function importImage(
  importing: Importing,
  source: ImageSource,
  name: string,
): Promise<ImageRecord> {
  const blobs = await openBlobs(importing, source);
  try {
    const image = await findImage(blobs);
    const layers = await importLayers(importing, blobs, image);
    await assemble(importing, image);
    const asked = "docker" in source ? source.docker : "";
    const fallback = asked || basename("path" in source ? source.path : "").replace(/\..*$/, "");
    return {
      name: checkName(name || familiarName(image.name, asked) || fallback),
      id: image.id,
      layers,
      importedAt: Date.now(),
      config: image.config,
    };
  } finally {
    await blobs.close();
  }
}

/** Podman tells names in full: `docker.io/library/node:24`, `localhost/tool:1`. People go on with what they asked for. */
export function familiarName(full: string, asked: string): string {
  if (asked !== "" && [asked, `${asked}:latest`].some((end) => full.endsWith(`/${end}`))) return asked;
  return full.replace(/^docker\.io\/(library\/)?/, "");
}

/** As registries have them: a tag is added where there is none. */
export function checkName(name: string): string {
  if (!/^[a-z0-9][a-z0-9._:/-]{0,254}$/i.test(name) || name.includes("..") || name.includes("//"))
    throw new CaissonError("INVALID_INPUT", "an image's name must be like `node:24`; give one with `name`");
  if (name === "host") throw new CaissonError("INVALID_INPUT", "`host` is what every machine has");
  return /:[^/]*$/.test(name) ? name : `${name}:latest`;
}

async function openBlobs(importing: Importing, source: ImageSource): Promise<Blobs> {
  if ("docker" in source) {
    const { dockerArchive } = await import("./docker.ts");
    return blobsOfArchive(
      await fetchToFile(importing, dockerArchive(importing.engineSocket(), source.docker), "fetching"),
    );
  }
  if (!source.path.startsWith("/")) throw new CaissonError("INVALID_INPUT", "`path` must be absolute");
  const stats = await stat(source.path).catch(() => {
    throw new CaissonError("PATH_NOT_FOUND", "there is no such archive or directory");
  });
  if (stats.isDirectory()) return blobsOfDirectory(source.path);
  if (!stats.isFile()) throw new CaissonError("NOT_A_FILE", "an image is a file or a directory");
  if (!(await isCompressed(source.path))) return blobsOfArchive(source.path);
  const file = await open(source.path);
  const plain = uncompressed(file.createReadStream() as AsyncIterable<Buffer>);
  return blobsOfArchive(await fetchToFile(importing, plain, "uncompressing"));
}

async function isCompressed(path: string): Promise<boolean> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
  return bytesRead === 4 && (buffer.readUInt16BE(0) === 0x1f8b || buffer.readUInt32LE(0) === 0xfd2fb528);
}

/** Into a place that the next import or collection clears. */
async function fetchToFile(
  importing: Importing,
  source: AsyncIterable<Buffer>,
  step: string,
): Promise<string> {
  const path = join(await importing.places.begin(), "archive");
  let bytes = 0;
  const counted = checked(source, undefined, rules.sizes.image_bytes, (more) => {
    bytes += more;
    importing.progress(step, 0, 0, bytes);
  });
  await pipeline(counted, createWriteStream(path, { flags: "wx", mode: 0o600 }));
  return path;
}

async function importLayers(importing: Importing, blobs: Blobs, image: FoundImage): Promise<LayerRecord[]> {
  const layers: LayerRecord[] = [];
  let left: number = rules.sizes.image_bytes;
  for (const [index, layer] of image.layers.entries()) {
    const report = (bytes: number) => importing.progress("layer", index, image.layers.length, bytes);
    report(0);
    const record =
      importing.known(layer.diffId) ?? (await importLayer(importing, blobs, layer, left, report));
    left -= record.bytes;
    if (left < 0)
      throw new CaissonError("TOO_LARGE", `the image unpacks to more than ${rules.sizes.image_bytes} bytes`);
    layers.push(record);
  }
  return layers;
}

async function importLayer(
  { guest, places }: Importing,
  blobs: Blobs,
  layer: FoundLayer,
  maxBytes: number,
  report: (bytes: number) => void,
): Promise<LayerRecord> {
  let bytes = 0;
  const count = (more: number) => {
    bytes += more;
    report(bytes);
  };
  const file = checked(blobs.stream(layer.file), layer.fileDigest, rules.sizes.image_bytes);
  // An archive is larger than what is in it by its headers.
  const content = checked(uncompressed(file), layer.diffId, 2 * rules.sizes.image_bytes, count);
  const directory = await places.begin();
  const unpack = { maxBytes: BigInt(maxBytes), maxFiles: BigInt(rules.sizes.image_files) };
  const done = await runImageJob(
    guest,
    { directory, uid: uid(), job: { case: "unpack", value: unpack } },
    content,
  );
  // What followed the archive's end has been read, and the digest was right, or this is not reached.
  await rename(directory, places.layer(layer.diffId)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
  return { digest: layer.diffId, bytes: Number(done.bytes) };
}

async function assemble({ guest, places, progress }: Importing, image: FoundImage): Promise<void> {
  const root = places.root(image.id);
  if ((await stat(root).catch(() => undefined)) !== undefined) return;
  if (image.layers.length === 0) throw wrong("it has no layers");
  progress("putting together", image.layers.length, image.layers.length, 0);
  const directory = await places.begin();
  const layers = image.layers.map(({ diffId }) => places.layer(diffId));
  await runImageJob(
    guest,
    { directory, uid: uid(), job: { case: "assemble", value: { layers } } },
    undefined,
  );
  await rename(directory, root);
}

function uid(): number {
  return isRoot() ? imageUid : 0;
}
