import { defineCommand } from "../command/command.ts";
import { printableLines } from "../text/neutralise.ts";
import { boxWithChanges, changesPlace, countableOf, printChanges } from "../work/changes.ts";

export const command = defineCommand({
  name: "diff",
  summary: "Show what a sandbox changed in the project",
  positionals: [changesPlace],
  options: {
    path: { kind: "text", short: "p", many: true, value: "GLOB", summary: "Only what matches" },
    names: { kind: "flag", summary: "Only the names of what changed" },
    "hide-ignored": { kind: "flag", summary: "Leave out what `.gitignore` names" },
    after: { kind: "text", value: "PATH", summary: "Only what comes after this path" },
    limit: { kind: "int", summary: "At most so many changes" },
  },
  examples: [
    { line: "caisson diff", what: "What the last run in this directory changed" },
    { line: "caisson diff --names work", what: "What the session `work` changed, names only" },
    { line: "caisson diff > changes.patch", what: "As a patch for `git apply`" },
  ],
  async run({ options, positionals, io, client, print }) {
    const box = await boxWithChanges(client, io, positionals[0]);
    const wanted = {
      paths: options.path,
      patch: !options.names,
      hideIgnored: options["hide-ignored"],
      after: options.after,
      limit: options.limit,
    };
    if (options.json) {
      const changes = await box.workspace.diff(wanted);
      await print.json(changes.map(({ pathBytes: _, ...change }) => change));
      return 0;
    }
    // As they come: nobody has to wait for, or hold, a hundred thousand of them.
    for await (const change of countableOf(box.workspace.changes(wanted))) {
      if (!options.names && change.patch !== "")
        await print.text(io.stdout.isTerminal ? printableLines(change.patch) : change.patch);
      else if (options.names || change.type !== "directory") await printChanges(print, [change]);
    }
    return 0;
  },
});
