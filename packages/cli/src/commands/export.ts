import { defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import { boxWithChanges, changesPlace } from "../work/changes.ts";

export const command = defineCommand({
  name: "export",
  summary: "Write a sandbox's changes as a patch or an archive",
  details:
    "A patch is for `git apply`, binary files included. An archive has what is new or other, and for what is gone an\n" +
    "empty file named .wh.NAME, as layers of images have.",
  positionals: [changesPlace],
  options: {
    format: { kind: "choice", choices: ["patch", "tar"], summary: "Default: patch" },
    path: { kind: "text", short: "p", many: true, value: "GLOB", summary: "Only what matches" },
    "hide-ignored": { kind: "flag", summary: "Leave out what `.gitignore` names" },
  },
  examples: [
    { line: "caisson export > changes.patch", what: "What the last run in this directory changed" },
    { line: "caisson export --format tar work > changes.tar", what: "What the session `work` changed" },
  ],
  async run({ options, positionals, io, client }) {
    const { format = "patch" } = options;
    if (options.json) throw new UsageError("an export is not JSON; `caisson diff --json` is");
    if (format === "tar" && io.stdout.isTerminal)
      throw new UsageError("an archive is not for a terminal: redirect it");
    const box = await boxWithChanges(client, io, positionals[0]);
    const wanted = { format, paths: options.path, hideIgnored: options["hide-ignored"] };
    for await (const data of box.workspace.export(wanted)) await io.stdout.write(data);
    return 0;
  },
});
