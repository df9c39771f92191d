import type { ImportProgress } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import { formatAge, formatSize } from "../text/units.ts";
import { resolve } from "../work/spec-options.ts";

const list = defineCommand({
  name: "ls",
  summary: "List images and their sizes",
  async run({ options, client, print }) {
    const images = await client.images.list();
    if (options.json) await print.json(images);
    else {
      const rows = images.map((image) => [
        print.safe(image.name),
        image.id.slice(7, 19),
        formatSize(image.sizeBytes),
        formatSize(image.unsharedBytes),
        formatAge(image.importedAt),
        String(image.inUse),
      ]);
      await print.table(["NAME", "ID", "SIZE", "UNSHARED", "AGE", "IN USE"], rows);
    }
    return 0;
  },
});

const bring = defineCommand({
  name: "import",
  summary: "Bring an image in",
  details:
    "From an archive as `docker save` or OCI tools write it (tar, also compressed), from a directory with an OCI\n" +
    "layout, or with --docker from the Docker engine on this host. Layers that are there already are not kept twice.",
  positionals: [{ name: "SOURCE", summary: "An archive or a directory; with --docker, an image's name" }],
  options: {
    docker: { kind: "flag", summary: "SOURCE is an image of the Docker engine" },
    name: { kind: "text", value: "NAME", summary: "Default: the name that the archive gives" },
  },
  examples: [
    { line: "caisson image import tools.tar --name tools:1", what: "An archive" },
    { line: "caisson image import --docker node:24", what: "What the Docker engine has" },
  ],
  async run({ options, positionals: [source], io, host, client, print }) {
    if (!options.docker && !host.sharesFiles && !source!.startsWith("/"))
      throw new UsageError("the daemon is on another machine: name an absolute path there");
    const from = options.docker ? { docker: source! } : { path: resolve(io.cwd, source!) };
    const isWatched = io.stderr.isTerminal && !options.json;
    const onProgress = isWatched
      ? (progress: ImportProgress) => void io.stderr.write(`\r\x1b[K${describe(progress)}`)
      : undefined;
    const image = await client.images.import(from, { name: options.name, onProgress });
    if (isWatched) await io.stderr.write("\r\x1b[K");
    if (options.json) await print.json(image);
    else
      await print.line(`${print.safe(image.name)}  ${image.id.slice(7, 19)}  ${formatSize(image.sizeBytes)}`);
    return 0;
  },
});

function describe({ step, layersDone, layers, bytes }: ImportProgress): string {
  const place = layers > 0 && layersDone < layers ? ` ${layersDone + 1} of ${layers}` : "";
  return `${step}${place}${bytes > 0 ? `, ${formatSize(bytes)}` : ""} …`;
}

const remove = defineCommand({
  name: "rm",
  summary: "Forget images, and free what no other one uses",
  positionals: [{ name: "NAME", summary: "A name, or an id for all of its names", rest: true }],
  async run({ options, positionals, client, print }) {
    let bytes = 0;
    for (const name of positionals) bytes += await client.images.remove(name);
    if (options.json) await print.json({ bytes });
    else await print.line(`freed ${formatSize(bytes)}`);
    return 0;
  },
});

const collect = defineCommand({
  name: "gc",
  summary: "Free what no image and no living sandbox uses",
  async run({ options, client, print }) {
    const freed = await client.images.collect();
    if (options.json) await print.json(freed);
    else await print.line(`freed ${formatSize(freed.bytes)} in ${freed.layers} layers`);
    return 0;
  },
});

export const command = defineCommand({
  name: "image",
  summary: "What sandboxes can be made from, beside the host",
  commands: [list, bring, remove, collect],
  examples: [{ line: "caisson run --image tools:1 -- sh -c 'echo hello'", what: "Run in one" }],
});
