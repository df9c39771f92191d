// Runs a program as somebody and collects what it says.
import { spawn } from "node:child_process";
import type { ProbeResult } from "./wall.ts";

export function collect(
  program: string,
  argv: string[],
  options: { account: { uid: number; gid: number }; env: NodeJS.ProcessEnv },
): Promise<ProbeResult> {
  const { uid, gid } = options.account;
  const other = uid === process.getuid?.() ? {} : { uid, gid };
  return new Promise((resolve, reject) => {
    const child = spawn(program, argv, {
      stdio: ["ignore", "pipe", "pipe"],
      cwd: "/",
      env: options.env,
      ...other,
    });
    let output = "";
    let complaint = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaint += text;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ exitCode: code ?? -1, output, complaint }));
  });
}
