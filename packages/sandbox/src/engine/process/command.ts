import { create } from "@bufbuild/protobuf";
import { CaissonError, type Command, CommandSchema, resolvePath, rules } from "@caisson/contract";
import type { StartInit } from "../../link/guest.ts";
import type { Box } from "../box.ts";
import type { CommandInit } from "../engine.ts";
import { envList } from "../inside.ts";
import { checkEnv } from "../spec.ts";
import { shellStateArgv } from "./shell-state/index.ts";

const maxArgvBytes = 1024 * 1024;
const maxCells = 10_000;

/** A command that has been checked, and where it runs. */
export interface PreparedCommand {
  command: Command;
  cwd: string;
}

export function prepareCommand(init: CommandInit, box: { record: { workdir: string } }): PreparedCommand {
  const command = create(CommandSchema, init);
  const [program] = command.argv;
  if (program === undefined || program === "") throw invalid("argv", "must name a program");
  if (command.argv.some((word) => word.includes("\0"))) throw invalid("argv", "must not hold a NUL");
  const bytes = command.argv.reduce((sum, word) => sum + Buffer.byteLength(word) + 1, 0);
  if (bytes > maxArgvBytes)
    throw new CaissonError("TOO_LARGE", `command.argv is larger than ${maxArgvBytes} bytes`);
  if (command.shellState && command.argv.length !== 1)
    throw invalid("argv", "must be one script when shell_state is set");
  if (!["", "agent", "root"].includes(command.user)) throw invalid("user", "must be `agent` or `root`");
  const { columns = 0, rows = 0, term = "" } = command.terminal ?? {};
  if (columns > maxCells || rows > maxCells)
    throw invalid("terminal", `has at most ${maxCells} columns and rows`);
  if (!/^[A-Za-z0-9._+-]{0,64}$/.test(term)) throw invalid("terminal.term", "is not a terminal's name");
  checkEnv(command.env, "command.env");
  return {
    command,
    cwd: command.cwd === "" ? box.record.workdir : resolvePath(command.cwd, box.record.workdir),
  };
}

/** The command as the guest gets it. */
export function startOf(
  { command, cwd }: PreparedCommand,
  stream: number,
  box: Box,
  traceparent?: string,
): StartInit {
  const { terminal } = command;
  const env = {
    ...(terminal ? { TERM: terminal.term || "xterm-256color" } : {}),
    ...(traceparent === undefined ? {} : { TRACEPARENT: traceparent }),
    ...command.env,
  };
  return {
    stream,
    argv: command.shellState ? shellStateArgv(command) : command.argv,
    cwd,
    env: envList(env),
    stdin: command.keepStdin || command.stdin.length > 0,
    ...(terminal ? { terminal: { columns: terminal.columns || 80, rows: terminal.rows || 24 } } : {}),
    timeoutMs: BigInt(timeoutOf(command, box)),
    graceMs: BigInt(command.graceMs || rules.times.exec_grace_ms),
    root: command.user === "root",
  };
}

/** A command's own time never exceeds the sandbox's limit. */
function timeoutOf(command: Command, box: Box): number {
  const limit = box.record.limits.timeoutMs;
  if (command.timeoutMs === 0 || limit === 0) return command.timeoutMs || limit;
  return Math.min(command.timeoutMs, limit);
}

function invalid(field: string, why: string): CaissonError {
  return new CaissonError("INVALID_INPUT", `command.${field} ${why}`);
}
