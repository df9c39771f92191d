// A program that the kernel runs on every crash of the machine, as systemd-coredump and apport are.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const setting = "/proc/sys/kernel/core_pattern";

/** Why the machine's setting cannot be changed here, if it cannot. */
export function whyNoCrashHandler(): string | false {
  if (process.getuid!() !== 0) return "only root can have the kernel run a program on crashes";
  try {
    writeFileSync(setting, readFileSync(setting));
    return false;
  } catch (error) {
    return `${setting} cannot be written here: ${(error as NodeJS.ErrnoException).code}`;
  }
}

export interface CrashHandler extends AsyncDisposable {
  /** The programs whose crashes it was run for, with the size of what it was given. */
  crashes(): { program: string; bytes: number }[];
}

/** Sets one up in a directory. Whatever becomes of this process, the machine gets its own setting back. */
export async function handleCrashes(dir: string): Promise<CrashHandler> {
  const seen = join(dir, "crashes");
  const handler = join(dir, "on-crash");
  writeFileSync(handler, `#!/bin/sh\necho "$1 $(/usr/bin/wc -c)" >> ${seen}\n`);
  chmodSync(handler, 0o755);
  // Lives until its input ends, and that is when this process ends at the latest.
  const keeper: ChildProcess = spawn("sh", ["-c", `cat > /dev/null; printf %s "$OLD" > ${setting}`], {
    env: { PATH: process.env.PATH, OLD: readFileSync(setting, "utf8").trimEnd() },
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  await once(keeper, "spawn");
  writeFileSync(setting, `|${handler} %e`);
  return {
    crashes: () =>
      (existsSync(seen) ? readFileSync(seen, "utf8") : "")
        .split("\n")
        .filter(Boolean)
        .map((line) => ({ program: line.split(" ")[0]!, bytes: Number(line.split(" ").at(-1)) })),
    async [Symbol.asyncDispose]() {
      const gone = once(keeper, "exit");
      keeper.stdin!.end();
      await gone;
    },
  };
}
