import type { Paint } from "../text/style.ts";
import { formatTable } from "../text/table.ts";
import { type Command, commonOptions } from "./command.ts";
import { type Option, valueName } from "./option.ts";

/** `caisson run [OPTIONS] [--] COMMAND…` */
export function usageLine(path: readonly string[], command: Command): string {
  const words = [...path];
  if (command.commands) words.push(command.run ? "[COMMAND]" : "COMMAND");
  if (Object.keys(command.options ?? {}).length > 0) words.push("[OPTIONS]");
  for (const place of command.positionals ?? []) {
    const name = place.command ? `[--] ${place.name}...` : place.rest ? `${place.name}...` : place.name;
    words.push(place.optional ? `[${name}]` : name);
  }
  return words.join(" ");
}

/** An option as people write it: `-f, --follow`, `--from N`. */
export function optionSyntax(name: string, option: Option): string {
  const value = valueName(option);
  return `${option.short ? `-${option.short}, ` : "    "}--${name}${value ? ` ${value}` : ""}`;
}

/** Help for one command. */
export function commandHelp(path: readonly string[], command: Command, paint: Paint): string {
  const parts = [`${command.summary}\n`, `${paint("bold", "Usage:")} ${usageLine(path, command)}\n`];
  if (command.details) parts.push(`${command.details}\n`);
  if (command.commands) {
    parts.push(
      section(
        "Commands:",
        command.commands.map((sub) => [sub.name, sub.summary]),
        paint,
      ),
    );
  }
  const places = (command.positionals ?? []).map((place) => [place.name, place.summary]);
  if (places.length > 0) parts.push(section("Words:", places, paint));
  const options = Object.entries({ ...command.options, ...commonOptions })
    .filter(([, option]) => !(option as Option).hidden)
    .map(([name, option]) => [optionSyntax(name, option), option.summary]);
  if (command.run) parts.push(section("Options:", options, paint));
  if (command.examples?.length) {
    const lines = command.examples.map(({ line, what }) => `  ${paint("dim", `# ${what}`)}\n  ${line}\n`);
    parts.push(`${paint("bold", "Examples:")}\n${lines.join("")}`);
  }
  return parts.join("\n");
}

/** Help for the whole. */
export function overview(
  groups: readonly { title: string; commands: readonly Command[] }[],
  paint: Paint,
): string {
  const parts = [
    "Run commands of AI coding agents in sealed sandboxes.\n",
    `${paint("bold", "Usage:")} caisson COMMAND [OPTIONS] [WORDS]\n`,
    ...groups.map(({ title, commands }) =>
      section(
        `${title}:`,
        commands.map(({ name, summary }) => [name, summary]),
        paint,
      ),
    ),
    `${paint("bold", "Examples:")}
  ${paint("dim", "# Run one command, sealed off, on a copy-on-write view of this directory")}
  caisson run -- npm test
  ${paint("dim", "# Work in one sandbox with several commands")}
  caisson run --session work -- npm ci
  caisson run --session work -- npm test
  ${paint("dim", "# What is missing on this machine, and what mends it")}
  caisson doctor
`,
    "`caisson help COMMAND` says more about each.\n",
  ];
  return parts.join("\n");
}

function section(title: string, rows: string[][], paint: Paint): string {
  return `${paint("bold", title)}\n${formatTable(rows.map((row) => [`  ${row[0]}`, ...row.slice(1)]))}`;
}
