import { defineCommand } from "../command/command.ts";
import { formatSize } from "../text/units.ts";
import { boxWithChanges, changesPlace } from "../work/changes.ts";

export const command = defineCommand({
  name: "discard",
  summary: "Throw an ended sandbox's changes away",
  positionals: [changesPlace],
  examples: [{ line: "caisson discard", what: "What the last run in this directory changed" }],
  async run({ options, positionals, io, client, print }) {
    const box = await boxWithChanges(client, io, positionals[0]);
    const bytes = await box.workspace.discard();
    if (options.json) await print.json({ sandboxId: box.id, bytes });
    else await print.line(`${box.id}: ${formatSize(bytes)} freed`);
    return 0;
  },
});
