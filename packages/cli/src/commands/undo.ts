import { defineCommand } from "../command/command.ts";
import { changesPlace, withApply } from "../work/changes.ts";

export const command = defineCommand({
  name: "undo",
  summary: "Take an apply back, where nobody has changed the file since",
  positionals: [
    {
      ...changesPlace,
      summary: "A sandbox's id, or a session's name; default: this directory's last run that was applied",
    },
  ],
  options: { apply: { kind: "text", value: "ID", summary: "Which apply; default: the latest" } },
  examples: [{ line: "caisson undo", what: "The project is as it was before the last apply" }],
  async run({ options, positionals, io, client, print }) {
    const { undone, files } = await withApply(client, io, positionals[0], (box) =>
      box.workspace.undo({ applyId: options.apply }),
    );
    if (options.json) await print.json({ undone, files });
    else {
      for (const { path, outcome, reason } of files) {
        if (outcome !== "applied") await print.line(`${outcome.padEnd(8)} ${print.safe(path)}  (${reason})`);
      }
      await print.line(undone === 1 ? "1 change taken back" : `${undone} changes taken back`);
    }
    return files.some(({ outcome }) => outcome === "conflict") ? 1 : 0;
  },
});
