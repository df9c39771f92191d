import type { Command } from "./command.ts";
import { commonOptions } from "./command.ts";
import { entries } from "./completion.ts";
import { usageLine } from "./help.ts";
import { type Option, valueName } from "./option.ts";

/** The reference of all commands as Markdown: docs/cli.md. */
export function reference(groups: readonly { title: string; commands: readonly Command[] }[]): string {
  const parts = [
    "<!-- Written by `node packages/cli/src/command/write-reference.ts` from the command table. -->",
    "# The command line",
    "`caisson COMMAND [OPTIONS] [WORDS]`. Every command takes `--json` and `--help`. A box is named by its id\n" +
      "(`sb_…`) or by its session's name. `run` and `exec` exit with the command's own code, 128 + N when signal N\n" +
      "ended it, 125 when caisson itself failed, 126 and 127 when the command could not be run or was not found;\n" +
      "all others with 0, 1, or 2 for a wrong command line.",
  ];
  for (const { title, commands } of groups) {
    parts.push(`## ${title}`);
    for (const { path, command } of entries(commands)) parts.push(...about(["caisson", ...path], command));
  }
  return `${parts.join("\n\n")}\n`;
}

function about(path: string[], command: Command): string[] {
  const parts = [
    `### ${path.slice(1).join(" ")}`,
    command.summary,
    `\`\`\`\n${usageLine(path, command)}\n\`\`\``,
  ];
  if (command.details) parts.push(command.details);
  const options = Object.entries(command.options ?? {}).filter(([, option]) => !option.hidden);
  if (options.length > 0) {
    const rows = options.map(([name, option]) => `| \`${syntax(name, option)}\` | ${option.summary} |`);
    parts.push(["| option | what it does |", "|---|---|", ...rows].join("\n"));
  }
  if (command.examples?.length) {
    const lines = command.examples.map(({ line, what }) => `# ${what}\n${line}`);
    parts.push(`\`\`\`sh\n${lines.join("\n")}\n\`\`\``);
  }
  return parts;
}

function syntax(name: string, option: Option): string {
  const value = valueName(option).replaceAll("|", "\\|");
  return `${option.short ? `-${option.short}, ` : ""}--${name}${value ? ` ${value}` : ""}`;
}

/** Names that no command may use for an option of its own. */
export const reservedOptions: readonly string[] = Object.keys(commonOptions);
