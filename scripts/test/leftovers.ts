// What a test run has left on the machine. All that tests make lies below one directory, so that what is there at the end, and whatever
// still knows of it, was left behind.
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** What was told to end may need a moment. */
const patienceMs = 10_000;

/** Processes, sockets, mounts, files; `ours`: names in the directory that must be gone. */
export async function leftoversIn(scratch: string, ours: RegExp): Promise<string[]> {
  const look = () => [
    ...processesOf(scratch),
    ...linesOf("/proc/net/unix", scratch).map((line) => `socket ${line.split(" ").at(-1)}`),
    ...linesOf("/proc/self/mountinfo", scratch).map((line) => `mount ${line.split(" ")[4]}`),
    ...readdirSync(scratch)
      .filter((name) => ours.test(name))
      .map((name) => `file ${scratch}/${name}`),
  ];
  for (const deadline = performance.now() + patienceMs; ; await sleep(100)) {
    const found = look();
    if (found.length === 0 || performance.now() > deadline) return found;
  }
}

/** Whoever was started by a test has the directory in its environment, its arguments, or both. */
function processesOf(scratch: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const [words, variables] = ["cmdline", "environ"].map((file) => readOrNothing(`/proc/${pid}/${file}`));
      if (!words!.includes(scratch) && !variables!.includes(scratch)) return [];
      return [`process ${pid}: ${words!.replaceAll("\0", " ").slice(0, 200)}`];
    });
}

function linesOf(file: string, words: string): string[] {
  return readOrNothing(file)
    .split("\n")
    .filter((line) => line.includes(words));
}

/** Processes come and go, and not all may be looked at. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
