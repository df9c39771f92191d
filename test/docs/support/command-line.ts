// `caisson …` in a document, held against the command table.
import { type Command, commonOptions } from "../../../packages/cli/src/command/command.ts";
import { entries } from "../../../packages/cli/src/command/completion.ts";
import { loadGroups } from "../../../packages/cli/src/commands/table.ts";

const groups = await loadGroups();
const commands = new Map(
  entries(groups.flatMap((group) => group.commands)).map(({ path, command }) => [path.join(" "), command]),
);

/** Every `caisson …` of a piece of code, as words, up to what is the sandbox's own. */
export function callsIn(code: string): string[][] {
  const calls = code
    .replaceAll("\\\n", " ")
    .replaceAll("$(", "\n")
    .matchAll(/(?:^|[\s(|;&])(?:\.\/)?caisson[ \t]+([^\n|;&)<>#]*)/g);
  return [...calls].map(([, rest]) => rest!.split(" -- ")[0]!.trim().split(/\s+/)).filter(([first]) => first);
}

/** What is wrong with a call, or undefined. */
export function complaint(words: readonly string[]): string | undefined {
  const first = words[0]!;
  if (["--help", "--version", "COMMAND", "…", "-"].includes(first)) return undefined;
  let name = "";
  let command: Command | undefined;
  let at = 0;
  for (; at < words.length; at++) {
    const next = commands.get(name === "" ? words[at]! : `${name} ${words[at]}`);
    if (!next) break;
    name = name === "" ? words[at]! : `${name} ${words[at]}`;
    command = next;
  }
  if (!command) return `there is no command ${first}`;
  // A group takes one of its commands; several may be listed as `start|stop`.
  if (command.commands && words[at] && !words[at]!.startsWith("-"))
    return `there is no command ${name} ${words[at]}`;
  for (let i = at; i < words.length; i++) {
    const word = words[i]!.replace(/[",.:]+$/, "");
    if (word === "--") return undefined;
    if (!word.startsWith("-") || word === "-") {
      if (takesCommand(command)) {
        if (command.positionals?.[0]?.command || i > at) return undefined;
      }
      continue;
    }
    if (!optionExists(command, word)) return `${name} has no option ${word}`;
    if (takesValue(command, word)) i++;
  }
  return undefined;
}

function takesCommand(command: Command): boolean {
  return command.positionals?.some((place) => place.command) ?? false;
}

function options(command: Command): [string, { short?: string; kind: string }][] {
  return Object.entries({ ...command.options, ...commonOptions });
}

function optionExists(command: Command, word: string): boolean {
  const known = options(command);
  if (word.startsWith("--")) return known.some(([name]) => `--${name}` === word.split("=")[0]);
  const letters = known.map(([, option]) => option.short);
  return [...word.slice(1)].every((letter) => letters.includes(letter));
}

function takesValue(command: Command, word: string): boolean {
  if (word.includes("=")) return false;
  const found = options(command).find(([name, { short }]) => word === `--${name}` || word === `-${short}`);
  return found !== undefined && found[1].kind !== "flag";
}
