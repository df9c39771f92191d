import type { ExecOptions } from "@caisson/client";
import type { OptionTable, Values } from "../command/option.ts";
import { UsageError } from "../command/usage-error.ts";
import type { Io } from "../io/io.ts";
import { readEnvironment } from "./environment.ts";

/** How a command is run: the options that `run` and `exec` share. */
export const commandOptions = {
  env: {
    kind: "text",
    short: "e",
    many: true,
    value: "NAME[=VALUE]",
    summary: "Set a variable, or pass one of yours on",
  },
  "env-file": {
    kind: "text",
    many: true,
    value: "FILE",
    summary: "Set variables from a file of NAME=VALUE lines",
  },
  cwd: {
    kind: "text",
    short: "w",
    value: "DIR",
    summary: "Directory to start in. Default: the sandbox's working directory",
  },
  user: {
    kind: "choice",
    short: "u",
    choices: ["agent", "root"],
    summary: "Who runs it; root needs a driver with a second user, which bubblewrap has not. Default: agent",
  },
  timeout: { kind: "duration", summary: "End it after this time (SIGTERM, then SIGKILL)" },
  interactive: { kind: "flag", short: "i", summary: "Pass standard input on even if it is a terminal" },
  tty: { kind: "flag", short: "t", summary: "Give it a terminal" },
  detach: { kind: "flag", short: "d", summary: "Start it and return at once" },
  "shell-state": {
    kind: "flag",
    summary: "Keep directory, variables and functions of the shell for the next command; takes one script",
  },
} as const satisfies OptionTable;

export type CommandValues = Values<typeof commandOptions>;

/** Is standard input the command's? Piped input always is; a terminal's only on request. */
export function takesStdin(values: CommandValues, { stdin }: Io): boolean {
  if (values.detach) return false;
  return stdin.isTerminal ? values.interactive || values.tty : !stdin.isEmpty;
}

/** Checks that belong together, then what the SDK needs. */
export async function execOptions(
  values: CommandValues,
  argv: readonly string[],
  io: Io,
): Promise<ExecOptions> {
  if (argv.length === 0) throw new UsageError("COMMAND is missing");
  if (values["shell-state"] && argv.length !== 1) {
    throw new UsageError("--shell-state takes one script, such as 'cd src && ls'");
  }
  if (values.tty && !values.detach && !io.stdin.isTerminal) {
    throw new UsageError("--tty needs a terminal as standard input; leave it out in scripts and pipes");
  }
  const options: ExecOptions = { cwd: values.cwd, user: values.user, timeout: values.timeout };
  const env = await readEnvironment(values, io);
  if (env) options.env = env;
  if (values["shell-state"]) options.shellState = true;
  if (values.tty) {
    options.terminal = { ...io.size, term: io.env.TERM };
    // How many colours it has is not in its name.
    const { COLORTERM = "" } = await io.askEnv(["COLORTERM"]);
    if (["truecolor", "24bit"].includes(COLORTERM)) options.env = { COLORTERM, ...options.env };
  }
  if (takesStdin(values, io)) options.openStdin = true;
  return options;
}
