import type { Preset } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import type { Printer } from "../text/printer.ts";
import { resolve } from "./spec-options.ts";

/** `net presets`. */
export const presets = defineCommand({
  name: "presets",
  summary: "Show what network presets lead to now",
  details:
    "A preset stands for the registries and remotes for which your own tools are configured on this machine. Their\n" +
    "files are read; where those say nothing, the tool itself is asked. What only a project's own files name is marked.",
  positionals: [{ name: "NAME", summary: "Only these. Default: all", optional: true, rest: true }],
  options: {
    project: {
      kind: "text",
      value: "DIR",
      summary: "Project whose files count. Default: the current directory",
    },
  },
  examples: [
    { line: "caisson net presets npm git", what: "Which hosts npm and git may reach with these presets" },
  ],
  async run({ options, positionals, io, client, print }) {
    const projectDir = resolve(io.cwd, options.project ?? ".");
    const found = await client.system.presets({ projectDir, names: positionals });
    if (options.json) await print.json(found);
    else await printPresets(print, found);
    return 0;
  },
});

export async function printPresets(print: Printer, presets: readonly Preset[]): Promise<void> {
  const rows = presets.flatMap(({ name, hosts }) =>
    hosts.length === 0
      ? [[name, "nothing", ""]]
      : hosts.map(({ rule, from, project }) => [
          name,
          print.safe(rule),
          print.safe(project ? `${from} (of the project)` : from),
        ]),
  );
  await print.table(["PRESET", "LEADS TO", "FROM"], rows);
  for (const { name, notes } of presets)
    for (const note of notes) await print.note(print.safe(`${name}: ${note}`));
}
