import { listDirectories, readText } from "./cgroup/files.ts";

/** How often memory is measured where no control group bounds it. */
const everyMs = 250;

export interface Watched {
  /** The sandbox's outer process on the host. */
  pid: number;
  memoryBytes: number;
  /** The most that was measured so far. */
  peakBytes: number;
  /** A process was ended because memory was exhausted. */
  killed(): void;
}

interface Member {
  pid: number;
  rssBytes: number;
  startTime: string;
  depth: number;
}

/** Stands in for a memory control group: measures, and ends the largest process of a sandbox above its bound. */
export class MemoryWatcher {
  /** With the time at which the outer process began: its number may come to mean another one. */
  readonly #watched = new Map<Watched, string>();
  #timer: NodeJS.Timeout | undefined;

  watch(sandbox: Watched): () => void {
    this.#watched.set(sandbox, startTimeOf(sandbox.pid));
    this.#timer ??= setInterval(() => this.#look(), everyMs).unref();
    return () => {
      this.#watched.delete(sandbox);
      if (this.#watched.size === 0) this.stop();
    };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    for (const [sandbox, began] of this.#watched) {
      if (began === "" || startTimeOf(sandbox.pid) !== began) continue;
      const members = treeOf(sandbox.pid);
      const used = members.reduce((sum, member) => sum + member.rssBytes, 0);
      sandbox.peakBytes = Math.max(sandbox.peakBytes, used);
      if (used <= sandbox.memoryBytes) continue;
      const largest = commandsOf(members).sort((a, b) => b.rssBytes - a.rssBytes)[0];
      if (!largest || startTimeOf(largest.pid) !== largest.startTime) continue;
      try {
        process.kill(largest.pid, "SIGKILL");
        sandbox.killed();
      } catch {
        // It is gone already.
      }
    }
  }
}

/** The outer process, the guest and its monitors are never the ones to end: they come first in each line. */
const leastDepth = 3;

function commandsOf(members: Member[]): Member[] {
  return members.filter((member) => member.depth >= leastDepth);
}

const pageBytes = 4096;

/** A process and everything below it, as the host sees them. */
export function treeOf(root: number): Member[] {
  const members: Member[] = [];
  const pending: [pid: number, depth: number][] = [[root, 0]];
  for (let next = pending.pop(); next; next = pending.pop()) {
    const [pid, depth] = next;
    const startTime = startTimeOf(pid);
    if (startTime === "") continue;
    const rssBytes = Number(readText(`/proc/${pid}/statm`).split(" ")[1] ?? 0) * pageBytes;
    members.push({ pid, rssBytes, startTime, depth });
    for (const child of childrenOf(pid)) pending.push([child, depth + 1]);
  }
  return members;
}

/** A child belongs to the thread that made it. */
function childrenOf(pid: number): number[] {
  return listDirectories(`/proc/${pid}/task`).flatMap((thread) =>
    readText(`/proc/${pid}/task/${thread}/children`).trim().split(" ").filter(Boolean).map(Number),
  );
}

function startTimeOf(pid: number): string {
  const stat = readText(`/proc/${pid}/stat`);
  // The name in parentheses may hold anything; the fields are counted from behind it.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}
