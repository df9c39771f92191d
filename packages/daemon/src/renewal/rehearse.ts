import { execFile } from "node:child_process";
import { getCompileCacheDir } from "node:module";
import { join } from "node:path";

const withinMs = 30_000;
const entry = join(import.meta.dirname, "../rehearsal.ts");

/** Tries the sources as they are now, in a process of its own. Undefined: a daemon can be made of them; else what is wrong. */
export function rehearse(): Promise<string | undefined> {
  const { PATH, HOME, CAISSON_GUEST } = process.env;
  const env = { PATH, HOME, CAISSON_GUEST, NODE_COMPILE_CACHE: getCompileCacheDir() };
  return new Promise((resolve) => {
    const options = { env, cwd: "/", timeout: withinMs, killSignal: "SIGKILL" as const };
    execFile(process.execPath, [entry], options, (error, _, said) => {
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
