import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** A process's start in clock ticks: with its number, its name for ever. */
export function startTimeOf(pid: number): number | undefined {
  const fields = statOf(pid);
  return fields && Number(fields[19]);
}

export function isAlive(pid: number, startTime: number): boolean {
  return pid > 0 && startTimeOf(pid) === startTime && statOf(pid)?.[0] !== "Z";
}

/** Puts a container's few first processes into the daemon's own control groups; what they start follows them. */
export function joinGroups(pid: number, procs: readonly string[]): void {
  if (procs.length === 0) return;
  const moved = new Set<number>();
  // One that is started meanwhile is found by the next look.
  for (let look = 0; look < 16; look++) {
    const left = treeOf(pid).filter((member) => !moved.has(member));
    if (left.length === 0) return;
    for (const member of left) {
      moved.add(member);
      for (const file of procs) join(file, member);
    }
  }
}

function join(file: string, pid: number): void {
  try {
    writeFileSync(file, String(pid));
  } catch (error) {
    // It has ended since it was found.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function treeOf(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    const parent = Number.isInteger(pid) ? Number(statOf(pid)?.[1]) : Number.NaN;
    if (!Number.isNaN(parent)) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const found = [root];
  for (const pid of found) found.push(...(children.get(pid) ?? []));
  return found;
}

/** The fields behind the name, which can hold anything. */
function statOf(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}
