import type { Applied } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import type { Printer } from "../text/printer.ts";
import { boxWithChanges, changesPlace } from "../work/changes.ts";

export const command = defineCommand({
  name: "apply",
  summary: "Bring a sandbox's changes into the project",
  details:
    "Files that would run code on the host later (hooks, git's and editors' settings, shells' start files) are\n" +
    "withheld unless they are named. `caisson undo` takes an apply back.",
  positionals: [changesPlace],
  options: {
    path: {
      kind: "text",
      short: "p",
      many: true,
      value: "GLOB",
      summary: "Only what matches; names a withheld file",
    },
    force: {
      kind: "flag",
      summary: "With --path: also what was changed on the host meanwhile; `undo` brings that back",
    },
    "dry-run": { kind: "flag", short: "n", summary: "Only say what would happen" },
  },
  examples: [
    { line: "caisson apply", what: "Everything that the last run in this directory changed" },
    { line: "caisson apply --path 'src/**' work", what: "Some of what the session `work` changed" },
    { line: "caisson apply --path .vscode/settings.json", what: "A file that is withheld otherwise" },
  ],
  async run({ options, positionals, io, client, print }) {
    const box = await boxWithChanges(client, io, positionals[0]);
    const { path: paths, "dry-run": dryRun, force } = options;
    if (force && paths.length === 0) throw new UsageError("--force needs --path: what may be replaced?");
    const result = await box.workspace.apply({ paths, dryRun, force });
    if (options.json) await print.json({ sandboxId: box.id, ...result });
    else await printApplied(print, result, options["dry-run"]);
    return result.conflicts > 0 ? 1 : 0;
  },
});

/** What was left out, by name, and how many files were applied. */
export async function printApplied(print: Printer, result: Applied, dryRun: boolean): Promise<void> {
  for (const { path, outcome, reason } of result.files) {
    if (outcome === "applied") continue;
    await print.line(`${outcome.padEnd(8)} ${print.safe(path)}${reason ? `  (${reason})` : ""}`);
  }
  const files = result.applied === 1 ? "1 file" : `${result.applied} files`;
  await print.line(dryRun ? `${files} would be applied` : `${files} applied`);
}
