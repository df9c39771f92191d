import { defineCommand } from "../command/command.ts";
import { printSnapshots } from "../work/snapshot-table.ts";

const build = defineCommand({
  name: "build",
  summary: "Keep a prepared sandbox as a template",
  details:
    "Replaces a template of the same name. `caisson create --template NAME` begins with what it holds.",
  positionals: [
    { name: "NAME", summary: "1 to 64 letters, digits, `.`, `_`, `-`" },
    { name: "BOX", summary: "The prepared sandbox: an id, or `session:NAME`" },
  ],
  options: {
    memory: { kind: "flag", summary: "Keep the machine's memory too, running commands included (microVMs)" },
  },
  async run({ options, positionals: [template, box], client, print }) {
    const snapshot = await client.snapshots.take(box!, { template, memory: options.memory });
    if (options.json) await print.json(snapshot);
    else await print.line(`${print.safe(snapshot.template)}  ${snapshot.id}`);
    return 0;
  },
});

const list = defineCommand({
  name: "ls",
  summary: "List templates",
  async run({ options, client, print }) {
    await printSnapshots(print, await client.snapshots.list({ templates: true }), options.json);
    return 0;
  },
});

const remove = defineCommand({
  name: "rm",
  summary: "Delete templates; sandboxes made from them live on",
  positionals: [{ name: "NAME", summary: "As `caisson template ls` lists it", rest: true }],
  async run({ options, positionals, client, print }) {
    for (const name of positionals) {
      const snapshot = await client.snapshots.delete(name);
      if (options.json) await print.json(snapshot);
      else await print.line(print.safe(snapshot.template));
    }
    return 0;
  },
});

export const command = defineCommand({
  name: "template",
  summary: "Prepared sandboxes from which many start",
  commands: [build, list, remove],
});
