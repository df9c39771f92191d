import { defineCommand } from "../command/command.ts";
import { formatSize } from "../text/units.ts";

export const command = defineCommand({
  name: "prune",
  summary: "Free what ended sandboxes left",
  options: {
    agents: {
      kind: "flag",
      summary: "Also settings and conversations that agents keep (`run --cache claude`)",
    },
  },
  examples: [{ line: "caisson prune", what: "Living sandboxes are not touched" }],
  async run({ options, client, print }) {
    const freed = await client.system.prune({ agents: options.agents });
    if (options.json) await print.json(freed);
    else await print.line(`forgot ${freed.sandboxes} sandboxes and freed ${formatSize(freed.bytes)}`);
    return 0;
  },
});
