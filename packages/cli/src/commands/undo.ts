import { defineCommand } from "../command/command.ts";
import { boxId } from "../work/box.ts";

export const command = defineCommand({
  name: "undo",
  summary: "Take an apply back, where nobody has changed the file since",
  positionals: [{ name: "BOX", summary: "The sandbox whose changes were applied" }],
  options: { apply: { kind: "text", value: "ID", summary: "Which apply; default: the latest" } },
  examples: [{ line: "caisson undo sb_0123456789abcdef", what: "The project is as it was before" }],
  async run({ options, positionals, client, print }) {
    const box = client.sandboxes.at(boxId(positionals[0]!));
    const { undone, files } = await box.workspace.undo({ applyId: options.apply });
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
