import { create } from "@bufbuild/protobuf";
import { type Image, ImageSchema } from "@caisson/contract";
import type { ImageRecord } from "../images/index.ts";
import type { EngineContext } from "./context.ts";
import type { EngineImages } from "./engine.ts";

/** Images as callers see them. */
export function engineImages(context: EngineContext): EngineImages {
  const { images } = context;
  return {
    async list() {
      const records = images.list();
      return records.map((record) => toImage(context, record, records));
    },
    async *import(source, name, call) {
      // Progress is told as it comes, the latest only: whoever reads slowly misses the rest.
      let latest: { step: string; layersDone: number; layers: number; bytes: bigint } | undefined;
      let wake = Promise.withResolvers<void>();
      const importing = images.import(source, name, call, (step, layersDone, layers, bytes) => {
        latest = { step, layersDone, layers, bytes: BigInt(bytes) };
        wake.resolve();
      });
      let over = false;
      const ended = () => {
        over = true;
        wake.resolve();
      };
      importing.then(ended, ended);
      while (!over) {
        await wake.promise;
        wake = Promise.withResolvers();
        if (over) break;
        if (latest) yield { progress: latest };
        latest = undefined;
        await new Promise((resolve) => setTimeout(resolve, 100));
        if (latest || over) wake.resolve();
      }
      yield { image: toImage(context, await importing, images.list()) };
    },
    remove: (name, call) => images.remove(name, call),
    collect: () => images.collect(),
  };
}

function toImage(context: EngineContext, record: ImageRecord, all: readonly ImageRecord[]): Image {
  const elsewhere = new Set(
    all.filter(({ id }) => id !== record.id).flatMap(({ layers }) => layers.map(({ digest }) => digest)),
  );
  const sum = (layers: ImageRecord["layers"]) =>
    BigInt(layers.reduce((bytes, layer) => bytes + layer.bytes, 0));
  const { architecture, env, workdir, entrypoint, command, user } = record.config;
  return create(ImageSchema, {
    name: record.name,
    id: `sha256:${record.id}`,
    layers: record.layers.map(({ digest }) => `sha256:${digest}`),
    sizeBytes: sum(record.layers),
    unsharedBytes: sum(record.layers.filter(({ digest }) => !elsewhere.has(digest))),
    importedAt: {
      seconds: BigInt(Math.floor(record.importedAt / 1000)),
      nanos: (record.importedAt % 1000) * 1e6,
    },
    architecture,
    env,
    workdir,
    entrypoint,
    command,
    user,
    inUse: [...context.boxes.values()].filter((box) => box.record.imageId === record.id).length,
  });
}
