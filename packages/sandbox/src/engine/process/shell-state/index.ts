import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "@caisson/contract";
import { inside } from "../../inside.ts";

/** Where a sandbox keeps its shell's state between commands. */
const stateFile = `${inside.home}/.caisson/shell-state`;

let wrapper: string | undefined;

/** The arguments that run a command's script with the sandbox's shell state. */
export function shellStateArgv(command: Command): string[] {
  const variables = Object.entries(command.env).map(([name, value]) => `${name}=${value}`);
  wrapper ??= `__caisson_bash=${quote(script("keep.bash"))}\n${script("keep.sh")}`;
  return ["/bin/sh", "-c", wrapper, "sh", stateFile, command.argv[0]!, command.cwd, ...variables];
}

function script(name: string): string {
  return readFileSync(join(import.meta.dirname, name), "utf8");
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
