import { defineCommand } from "../command/command.ts";
import { printableLines } from "../text/neutralise.ts";
import { boxWithChanges, changesPlace, printChanges } from "../work/changes.ts";

export const command = defineCommand({
  name: "diff",
  summary: "Show what a sandbox changed in the project",
  positionals: [changesPlace],
  options: {
    path: { kind: "text", short: "p", many: true, value: "GLOB", summary: "Only what matches" },
    names: { kind: "flag", summary: "Only the names of what changed" },
  },
  examples: [
    { line: "caisson diff", what: "What the last run in this directory changed" },
    { line: "caisson diff --names work", what: "What the session `work` changed, names only" },
    { line: "caisson diff > changes.patch", what: "As a patch for `git apply`" },
  ],
  async run({ options, positionals, io, client, print }) {
    const box = await boxWithChanges(client, io, positionals[0]);
    const changes = await box.workspace.diff({ paths: options.path, patch: !options.names });
    if (options.json) await print.json(changes.map(({ pathBytes: _, ...change }) => change));
    else if (options.names) await printChanges(print, changes);
    else {
      for (const change of changes) {
        if (change.patch !== "")
          await print.text(io.stdout.isTerminal ? `${printableLines(change.patch)}` : change.patch);
        else if (change.type !== "directory") await printChanges(print, [change]);
      }
    }
    return 0;
  },
});
