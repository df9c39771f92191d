import { defineCommand } from "../command/command.ts";

export const command = defineCommand({
  name: "fork",
  summary: "Make copies of a sandbox as it is now",
  details:
    "With its running commands where the driver keeps memory (microVMs), else with its files. Commands that run in\n" +
    "several copies have the same state, that of their own random generators included.",
  positionals: [{ name: "BOX", summary: "An id, or the name of a session as `session:NAME`" }],
  options: { count: { kind: "int", short: "n", summary: "How many copies, 1 to 16. Default: 1" } },
  async run({ options, positionals: [box], client, print }) {
    const made = await client.snapshots.fork(box!, { count: options.count ?? 1 });
    if (options.json) await print.json(made);
    else for (const { id } of made) await print.line(id);
    return 0;
  },
});
