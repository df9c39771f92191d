import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { CaissonError } from "@caisson/contract";
import type { SecretDefinition } from "./definition.ts";

const mostBytes = 16 * 1024;
const commandWithinMs = 15_000;

/** Reads a secret's value from where it is kept. Errors name the secret, never a part of it. */
export async function readValue(
  { name, source }: SecretDefinition,
  stored: (name: string) => string | undefined,
): Promise<string> {
  const missing = (why: string) => new CaissonError("SECRET_UNAVAILABLE", `the secret ${name} ${why}`);
  let value: string | undefined;
  try {
    if ("env" in source) value = process.env[source.env];
    else if ("file" in source) value = await readSecretFile(source.file);
    else if ("command" in source) value = await runCommand(source.command);
    else value = stored(name);
  } catch {
    // Whatever went wrong may hold what was read.
    throw missing("cannot be read from where it is kept");
  }
  return checkValue(value?.replace(/\r?\n$/, ""), missing);
}

/** A value that can stand in a header. */
export function checkValue(value: string | undefined, wrong: (why: string) => CaissonError): string {
  if (!value) throw wrong("is empty, or not there");
  if (Buffer.byteLength(value) > mostBytes) throw wrong(`is longer than ${mostBytes} bytes`);
  if (/[\u0000-\u001f\u007f]/.test(value)) throw wrong("holds a line break or another control character");
  return value;
}

async function readSecretFile(path: string): Promise<string> {
  const named = path.startsWith("~/") ? join(process.env.HOME || homedir(), path.slice(2)) : path;
  const file = await open(named, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    if (!(await file.stat()).isFile()) throw new Error("not a file");
    const buffer = Buffer.alloc(mostBytes + 2);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** A program of the user's configuration, away from every project and with nothing but the user's own PATH and HOME. */
function runCommand([program = "", ...args]: string[]): Promise<string> {
  const { PATH, HOME, LANG } = process.env;
  const options = {
    cwd: "/",
    env: { PATH, HOME, LANG },
    timeout: commandWithinMs,
    maxBuffer: mostBytes + 2,
    killSignal: "SIGKILL" as const,
  };
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, options, (error, stdout) =>
      error ? reject(new Error("the command failed")) : resolve(stdout),
    );
    child.stdin?.end();
  });
}
