import { readdirSync, readFileSync } from "node:fs";

/** Kills a process that may have ended by itself meanwhile. */
export function killIfLiving(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Kills every process that was started with a directory of a test's own in its environment. */
export function killAllOf(dir: string): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    if (environmentOf(pid).includes(dir)) killIfLiving(Number(pid));
}

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return "";
  }
}
