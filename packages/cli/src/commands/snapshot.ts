import { defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import type { Io } from "../io/io.ts";
import { printSnapshots } from "../work/snapshot-table.ts";
import { labelsFrom, resolve } from "../work/spec-options.ts";

const take = defineCommand({
  name: "create",
  summary: "Keep a sandbox as it is now and print the snapshot's id",
  positionals: [{ name: "BOX", summary: "An id, or the name of a session as `session:NAME`" }],
  options: {
    memory: { kind: "flag", summary: "Keep the machine's memory too, running commands included (microVMs)" },
    label: { kind: "text", short: "l", many: true, value: "KEY=VALUE", summary: "Label the snapshot" },
  },
  async run({ options, positionals: [box], client, print }) {
    const labels = labelsFrom(options.label);
    const snapshot = await client.snapshots.take(box!, { memory: options.memory, labels });
    if (options.json) await print.json(snapshot);
    else await print.line(snapshot.id);
    return 0;
  },
});

const list = defineCommand({
  name: "ls",
  summary: "List snapshots, templates included",
  async run({ options, client, print }) {
    await printSnapshots(print, await client.snapshots.list(), options.json);
    return 0;
  },
});

const show = defineCommand({
  name: "get",
  summary: "Show one snapshot",
  positionals: [{ name: "SNAPSHOT", summary: "An id, or a template's name" }],
  async run({ options, positionals: [name], client, print }) {
    const snapshot = await client.snapshots.get(name!);
    if (options.json) await print.json(snapshot);
    else await printSnapshots(print, [snapshot], false);
    return 0;
  },
});

const remove = defineCommand({
  name: "rm",
  summary: "Delete snapshots; sandboxes made from them live on",
  positionals: [{ name: "SNAPSHOT", summary: "An id, or a template's name", rest: true }],
  async run({ options, positionals, client, print }) {
    for (const name of positionals) {
      const snapshot = await client.snapshots.delete(name);
      if (options.json) await print.json(snapshot);
      else await print.line(snapshot.id);
    }
    return 0;
  },
});

const send = defineCommand({
  name: "export",
  summary: "Write a snapshot's files as a tar archive to standard output",
  positionals: [{ name: "SNAPSHOT", summary: "An id, or a template's name" }],
  async run({ positionals: [name], client, io }) {
    for await (const piece of client.snapshots.export(name!)) await io.stdout.write(piece);
    return 0;
  },
});

const receive = defineCommand({
  name: "import",
  summary: "Bring in a snapshot that `export` wrote, here or elsewhere, and print its id",
  details:
    "It brings files and no permission. One that was taken with a project needs it named again: `caisson restore --workspace DIR`.",
  positionals: [{ name: "FILE", summary: "The archive, or - for standard input" }],
  options: {
    template: { kind: "text", value: "NAME", summary: "Keep it as a template of this name" },
    memory: {
      kind: "flag",
      summary: "Take a machine's memory too (microVMs), from somebody whom you trust",
    },
    label: { kind: "text", short: "l", many: true, value: "KEY=VALUE", summary: "Label the snapshot" },
  },
  examples: [
    {
      line: "caisson snapshot export $(caisson snapshot create session:work) | caisson snapshot import --template ready -",
      what: "Out and in again; between two machines, by way of a file or ssh",
    },
  ],
  async run({ options, positionals: [file], client, io, print }) {
    if (file === "-" && io.stdin.isTerminal)
      throw new UsageError("an archive does not come from a terminal; name a file or pipe it");
    const archive = file === "-" ? io.stdin.read() : await fileOf(io, file!);
    const { template, memory } = options;
    const labels = labelsFrom(options.label);
    const snapshot = await client.snapshots.import(archive, { template, memory, labels, signal: io.gone });
    if (options.json) await print.json(snapshot);
    else await print.line(snapshot.id);
    return 0;
  },
});

/** A file that can be read; whether it is one is asked before anything is sent. */
async function fileOf(io: Io, name: string): Promise<AsyncIterable<Uint8Array>> {
  const { stat } = await import("node:fs/promises");
  const path = resolve(io.cwd, name);
  const stats = await stat(path).catch((thrown: NodeJS.ErrnoException) => {
    const why = thrown.code === "ENOENT" ? "it is not there" : String(thrown.code);
    throw new UsageError(`cannot import ${name}: ${why}`);
  });
  if (stats.isDirectory()) throw new UsageError(`cannot import ${name}: it is a directory`);
  return io.readFile(path);
}

export const command = defineCommand({
  name: "snapshot",
  summary: "Keep sandboxes and make others from them",
  commands: [take, list, show, remove, send, receive],
});
