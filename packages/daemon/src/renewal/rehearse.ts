import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { join } from "node:path";

const withinMs = 30_000;
const ownRoot = join(import.meta.dirname, "../../../..");

/** Where the next daemon would come from, and the variables by which it would be started. */
export interface Installation {
  root: string;
  env: Readonly<Record<string, string | undefined>>;
}

/** Tries the sources as they are now, in a process of its own. Undefined: a daemon can be made of them; else what is wrong. */
export function rehearse(
  of: Installation = { root: ownRoot, env: process.env },
): Promise<string | undefined> {
  const { PATH, HOME, CAISSON_GUEST, CAISSON_NODE } = of.env;
  const env = { PATH, HOME, CAISSON_GUEST, NODE_COMPILE_CACHE: getCompileCacheDir() };
  const entry = join(of.root, "packages/daemon/src/rehearsal.ts");
  const node = CAISSON_NODE || join(of.root, "node_modules/.bin/node");
  for (const part of [entry, node])
    if (part.includes("/") && !existsSync(part)) return Promise.resolve(`${part} is missing`);
  return new Promise((resolve) => {
    const options = { env, cwd: "/", timeout: withinMs, killSignal: "SIGKILL" as const };
    execFile(node, ["--disable-warning=ExperimentalWarning", entry], options, (error, _, said) => {
      if (!error) return resolve(undefined);
      resolve(summary(said) || (error.killed ? "it did not end" : error.message.split("\n")[0]!));
    });
  });
}

/** The line that names the error, of all that Node says about one. */
function summary(said: string): string {
  const lines = said.split("\n").map((line) => line.trim());
  const line =
    lines.find((each) => /^(\w+ )?\w*(Error|Exception)\b.*:/.test(each)) ?? lines.find(Boolean) ?? "";
  return line.replace(/\p{Cc}/gu, " ").slice(0, 300);
}
