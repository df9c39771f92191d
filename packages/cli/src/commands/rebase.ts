import { defineCommand } from "../command/command.ts";
import { boxWithChanges, changesPlace } from "../work/changes.ts";

export const command = defineCommand({
  name: "rebase",
  summary: "Bring an ended sandbox's changes up to what the project is now",
  details:
    "Text that both sides changed is merged where git has the version that both came from. What cannot be merged stays in\n" +
    "conflict: the project has its version, `caisson export` and `caisson apply --force` have the sandbox's.",
  positionals: [changesPlace],
  examples: [{ line: "caisson rebase", what: "What the last run in this directory changed" }],
  async run({ options, positionals, io, client, print }) {
    const box = await boxWithChanges(client, io, positionals[0]);
    const result = await box.workspace.rebase();
    if (options.json) await print.json({ sandboxId: box.id, ...result });
    else {
      for (const { path, outcome, reason } of result.files)
        await print.line(`${outcome.padEnd(8)} ${print.safe(path)}${reason ? `  (${reason})` : ""}`);
      await print.line(`${result.merged} merged, ${result.conflicts} in conflict`);
    }
    return result.conflicts > 0 ? 1 : 0;
  },
});
