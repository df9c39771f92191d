import { spawn } from "node:child_process";

/** Runs a command to its end without looking at what it prints; fails if it fails. */
export function run(
  argv: string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(argv[0]!, argv.slice(1), { stdio: "ignore", ...options });
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${argv.join(" ")}: ${code ?? signal}`));
    });
  });
}
