import type { Client } from "@caisson/client";
import type { Call, Command, commonOptions } from "./command/command.ts";
import { commandHelp } from "./command/help.ts";
import { parse } from "./command/parse.ts";
import { closest } from "./command/suggest.ts";
import { UsageError } from "./command/usage-error.ts";
import { commandNames, findCommand } from "./commands/table.ts";
import type { Host } from "./io/host.ts";
import type { Io } from "./io/io.ts";
import { Printer } from "./text/printer.ts";
import { type ErrorContext, reportError } from "./text/report-error.ts";

/** Runs one command line and returns its exit code. It never throws, blocks or touches the process. */
export async function main(args: readonly string[], io: Io, client: Client, host: Host): Promise<number> {
  const context: ErrorContext = { io, json: asksForJson(args), name: "caisson", runsCommands: false };
  try {
    const { path, command, words } = await choose(args);
    context.name = ["caisson", ...path].join(" ");
    context.runsCommands = command.runsCommands ?? false;
    const print = new Printer(io);
    const { options, positionals } = parse(command, words);
    if (options.help || !command.run) {
      await print.text(commandHelp(["caisson", ...path], command, print.paint));
      return options.help ? 0 : 2;
    }
    return await command.run({ options: options as Call["options"], positionals, io, client, host, print });
  } catch (thrown) {
    return await reportError(thrown, context);
  }
}

/** The command that the first words name, and what follows them. */
async function choose(
  args: readonly string[],
): Promise<{ path: string[]; command: Command; words: readonly string[] }> {
  const first = topLevel(args[0]);
  const found = findCommand(first);
  if (!found) throw unknown(first, commandNames, "caisson help");
  let command = found instanceof Promise ? await found : found;
  const path = [first];
  let at = 1;
  while (command.commands && args[at] !== undefined && !args[at]!.startsWith("-")) {
    const word = args[at++]!;
    const sub = command.commands.find(({ name }) => name === word);
    if (!sub)
      throw unknown(
        [...path, word].join(" "),
        command.commands.map(({ name }) => [...path, name].join(" ")),
      );
    command = sub;
    path.push(word);
  }
  return { path, command, words: args.slice(at) };
}

function topLevel(word: string | undefined): string {
  if (word === undefined || word === "--help" || word === "-h") return "help";
  if (word === "--version" || word === "-V") return "version";
  return word;
}

function unknown(word: string, known: readonly string[], see?: string): UsageError {
  const meant = closest(word, known);
  const hint = meant ? `; did you mean ${meant}?` : see ? `; \`${see}\` lists them` : "";
  return new UsageError(`there is no command ${word}${hint}`);
}

/** Errors before the options were read are told in the form that was asked for, too. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  const at = args.indexOf(`--${"json" satisfies keyof typeof commonOptions}`);
  return at !== -1 && (end === -1 || at < end);
}
