import { CaissonError } from "@caisson/client";
import { UsageError } from "../command/usage-error.ts";
import type { Io } from "../io/io.ts";
import { stringify } from "./json.ts";
import { printableLines } from "./neutralise.ts";
import { paintFor } from "./style.ts";

export interface ErrorContext {
  io: Io;
  json: boolean;
  /** How the command is called, such as `caisson run`. */
  name: string;
  runsCommands: boolean;
}

/** Says what went wrong and what to do about it; returns the exit code. */
export async function reportError(
  thrown: unknown,
  { io, json, name, runsCommands }: ErrorContext,
): Promise<number> {
  if (thrown instanceof UsageError) {
    await say(io, json, { code: "USAGE", message: thrown.message, next_step: `See \`${name} --help\`.` });
    return runsCommands ? 125 : 2;
  }
  const error = CaissonError.from(thrown);
  // The table speaks of fields; here they are options and words.
  const nextStep = error.code === "INVALID_INPUT" ? `See \`${name} --help\`.` : error.nextStep;
  await say(io, json, { code: error.code, message: error.message, next_step: nextStep });
  if (!runsCommands) return 1;
  if (error.code === "COMMAND_NOT_FOUND") return 127;
  if (error.code === "COMMAND_NOT_EXECUTABLE") return 126;
  return 125;
}

async function say(
  { stderr, env }: Io,
  json: boolean,
  error: { code: string; message: string; next_step: string },
): Promise<void> {
  if (json) {
    await stderr.write(`${stringify({ error })}\n`);
    return;
  }
  const paint = paintFor(stderr, env);
  const clean = (text: string) => (stderr.isTerminal ? printableLines(text) : text);
  await stderr.write(`${paint("red", "caisson:")} ${clean(error.message)}\n${clean(error.next_step)}\n`);
}
