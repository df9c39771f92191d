import type { Client } from "@caisson/client";
import type { Host } from "../io/host.ts";
import type { Io } from "../io/io.ts";
import type { Printer } from "../text/printer.ts";
import type { OptionTable, Values } from "./option.ts";

/** A word of the command line that is not an option. */
export interface Positional {
  /** As shown in help, in capitals. */
  name: string;
  summary: string;
  optional?: true;
  /** Takes all words that are left. */
  rest?: true;
  /** A command with options of its own: from its first word on nothing is ours. */
  command?: true;
  /** Words that may stand here, for completions. */
  choices?: readonly string[];
}

export interface Example {
  line: string;
  what: string;
}

/** What a command gets when it runs. */
export interface Call<T extends OptionTable = OptionTable> {
  options: Values<T> & { json: boolean };
  positionals: string[];
  io: Io;
  client: Client;
  host: Host;
  print: Printer;
}

/** One command. Groups have commands of their own, and `run` only if the group alone means something. */
export interface Command<T extends OptionTable = OptionTable> {
  name: string;
  summary: string;
  /** More than the summary says, where there is more. */
  details?: string;
  positionals?: readonly Positional[];
  options?: T;
  examples?: readonly Example[];
  /** Runs a command of the sandbox: errors of our own exit with 125 to 127, as with Docker. */
  runsCommands?: true;
  commands?: readonly Command[];
  /** Returns the exit code. */
  run?(call: Call<T>): Promise<number>;
}

/** Checks that what `run` reads are options that the command has. */
export function defineCommand<const T extends OptionTable = Record<never, never>>(
  command: Command<T>,
): Command {
  return command as unknown as Command;
}

/** Options that every command takes. */
export const commonOptions = {
  json: { kind: "flag", summary: "Print JSON instead of text" },
  help: { kind: "flag", short: "h", summary: "Show this help" },
} as const satisfies OptionTable;
