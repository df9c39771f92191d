import { UsageError } from "../command/usage-error.ts";
import type { Io } from "../io/io.ts";
import { readText } from "./read-text.ts";

interface EnvironmentValues {
  env: string[];
  "env-file": string[];
}

/** The variables that were asked for, files first; undefined when there are none. */
export async function readEnvironment(
  values: EnvironmentValues,
  io: Io,
): Promise<Record<string, string> | undefined> {
  if (values.env.length === 0 && values["env-file"].length === 0) return undefined;
  const wanted: string[] = [];
  for (const file of values["env-file"]) wanted.push(...linesOf(await readText(io, file), file));
  wanted.push(...values.env);
  const passed = wanted.filter((word) => !word.includes("="));
  const callers = passed.length > 0 ? await io.askEnv(passed) : {};
  const env: Record<string, string> = {};
  for (const word of wanted) {
    const equals = word.indexOf("=");
    const name = equals === -1 ? word : word.slice(0, equals);
    checkName(name);
    const value = equals === -1 ? callers[name] : word.slice(equals + 1);
    if (value !== undefined) env[name] = value;
  }
  return env;
}

function checkName(name: string): void {
  if (name === "" || name.includes("\0") || name === "__proto__") {
    throw new UsageError(`${JSON.stringify(name)} is not the name of a variable`);
  }
}

/** NAME=VALUE or NAME per line; empty lines and comments are skipped, values are taken as they are. */
function linesOf(text: string, file: string): string[] {
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  const wanted = lines.filter((line) => line.trim() !== "" && !line.startsWith("#"));
  for (const line of wanted) {
    if (!/^[A-Za-z_][A-Za-z0-9_.-]*(=|$)/.test(line)) {
      throw new UsageError(`--env-file ${file}: line ${lines.indexOf(line) + 1} is not NAME=VALUE`);
    }
  }
  return wanted;
}
