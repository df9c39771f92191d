// Which configuration and layers make up an image, in either of the two forms that archives have.
import { hash } from "node:crypto";
import type { Blobs } from "./blobs.ts";
import { asList, asObject, digestOf, parseJson, parseObject, readConfig, wrong } from "./config.ts";
import type { ImageConfig } from "./record.ts";

/** An image that has not been unpacked yet. */
export interface FoundImage {
  /** The name that the archive gives, or nothing. */
  name: string;
  id: string;
  config: ImageConfig;
  layers: FoundLayer[];
}

export interface FoundLayer {
  /** What the uncompressed content must come to. */
  diffId: string;
  /** The file that holds it, and what that must come to, where the archive says. */
  file: string;
  fileDigest: string | undefined;
}

export async function findImage(blobs: Blobs): Promise<FoundImage> {
  if (await blobs.has("manifest.json")) return dockerImage(blobs);
  if (await blobs.has("index.json")) return ociImage(blobs);
  throw wrong("it has neither a manifest.json nor an index.json");
}

/** As `docker save` writes it. */
async function dockerImage(blobs: Blobs): Promise<FoundImage> {
  const list = asList(parseJson(await blobs.read("manifest.json"), "manifest"), "manifest");
  if (list.length !== 1) throw wrong(`it holds ${list.length} images; export one`);
  const manifest = asObject(list[0], "manifest");
  const file = nameOf(manifest.Config);
  const bytes = await blobs.read(file);
  const id = hash("sha256", bytes);
  const named = /(?:^|\/)([0-9a-f]{64})(?:\.json)?$/.exec(file)?.[1];
  if (named !== undefined && named !== id) throw wrong("its configuration is not what its digest says");
  const { config, diffIds } = readConfig(bytes);
  const files = asList(manifest.Layers, "list of layers").map(nameOf);
  if (files.length !== diffIds.length) throw wrong("its lists of layers differ");
  const tags = manifest.RepoTags ? asList(manifest.RepoTags, "list of names") : [];
  return {
    name: typeof tags[0] === "string" ? tags[0] : "",
    id,
    config,
    layers: diffIds.map((diffId, index) => ({ diffId, file: files[index]!, fileDigest: undefined })),
  };
}

/** As the OCI's image layout has it. */
async function ociImage(blobs: Blobs): Promise<FoundImage> {
  const index = parseObject(await blobs.read("index.json"), "index");
  const { manifest, name } = await chooseManifest(blobs, index, 0);
  const configDigest = digestOf(asObject(manifest.config, "manifest").digest, "configuration");
  const { config, diffIds } = readConfig(await readBlob(blobs, configDigest));
  const layers = asList(manifest.layers, "list of layers").map((layer) =>
    digestOf(asObject(layer, "layer").digest, "layer"),
  );
  if (layers.length !== diffIds.length) throw wrong("its lists of layers differ");
  return {
    name,
    id: configDigest,
    config,
    layers: diffIds.map((diffId, at) => ({
      diffId,
      file: `blobs/sha256/${layers[at]}`,
      fileDigest: layers[at],
    })),
  };
}

const architectures: Record<string, string> = { x64: "amd64", arm64: "arm64" };

/** An index may hold one manifest, or one for each kind of machine, directly or in another index. */
async function chooseManifest(
  blobs: Blobs,
  index: Record<string, unknown>,
  depth: number,
): Promise<{ manifest: Record<string, unknown>; name: string }> {
  const entries = asList(index.manifests, "index").map((entry) => asObject(entry, "index"));
  const here = architectures[process.arch] ?? process.arch;
  const fitting = entries.filter(({ platform }) => {
    if (platform === undefined) return true;
    const { os, architecture } = asObject(platform, "index");
    return os === "linux" && architecture === here;
  });
  const [entry] = fitting;
  if (!entry) throw wrong(`it has nothing for linux/${here}`);
  if (fitting.length > 1) throw wrong(`it holds ${fitting.length} images; export one`);
  const found = parseObject(await readBlob(blobs, digestOf(entry.digest, "index")), "manifest");
  const annotations = asObject(entry.annotations ?? {}, "index");
  const full = annotations["io.containerd.image.name"];
  const short = annotations["org.opencontainers.image.ref.name"];
  const name = typeof full === "string" ? full : typeof short === "string" ? short : "";
  if (found.manifests === undefined) return { manifest: found, name };
  if (depth > 1) throw wrong("its indexes are too deep");
  const inner = await chooseManifest(blobs, found, depth + 1);
  return { manifest: inner.manifest, name: name || inner.name };
}

async function readBlob(blobs: Blobs, digest: string): Promise<Buffer> {
  const bytes = await blobs.read(`blobs/sha256/${digest}`);
  if (hash("sha256", bytes) !== digest) throw wrong("a document is not what its digest says");
  return bytes;
}

/** A name inside the archive: it never leaves it, so nothing needs to be resolved. */
function nameOf(value: unknown): string {
  if (typeof value !== "string" || value.length > 512 || value.split("/").includes(".."))
    throw wrong("its manifest names no file");
  return value;
}
