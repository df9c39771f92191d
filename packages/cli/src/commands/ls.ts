import type { Sandbox } from "@caisson/client";
import { type Call, defineCommand } from "../command/command.ts";
import type { OptionTable } from "../command/option.ts";
import { printSandboxes } from "../work/sandbox-table.ts";
import { labelsFrom } from "../work/spec-options.ts";

export const listOptions = {
  all: { kind: "flag", short: "a", summary: "Also those that have ended" },
  label: { kind: "text", short: "l", many: true, value: "KEY=VALUE", summary: "Only those with this label" },
  quiet: { kind: "flag", short: "q", summary: "Only ids" },
} as const satisfies OptionTable;

export const command = defineCommand({
  name: "ls",
  summary: "List sandboxes",
  options: listOptions,
  examples: [
    { line: "caisson ls", what: "What is living" },
    { line: "caisson ls --all --label task=42", what: "Everything of one task" },
  ],
  run: listSandboxes,
});

/** Lists sandboxes, as `ls` and as `ps` without a box. */
export async function listSandboxes({ options, client, print }: Call<typeof listOptions>): Promise<number> {
  const sandboxes: Sandbox[] = [];
  for await (const sandbox of client.sandboxes.list({
    all: options.all,
    labels: labelsFrom(options.label),
  })) {
    sandboxes.push(sandbox);
  }
  if (options.json) await print.json(sandboxes);
  else if (options.quiet) for (const { id } of sandboxes) await print.line(id);
  else await printSandboxes(print, sandboxes);
  return 0;
}
