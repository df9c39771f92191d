import type { LimitValues } from "../values.ts";

export interface CgroupUsage {
  memoryBytes: number;
  memoryPeakBytes: number;
  pids: number;
  /** Undefined where the kernel does not count it here. */
  cpuUs: number | undefined;
}

/**
 * Processes of ours in a sandbox's group, beside its own. The guest holds commands to the bound itself;
 * with the group a little above it, a full sandbox can still be worked in.
 */
const guestProcesses = 16;

/** What a group's number of processes is bounded to. */
export function pidsMax(limits: LimitValues): number | "max" {
  return limits.pids ? limits.pids + guestProcesses : "max";
}

/** The control group of one sandbox. */
export interface Cgroup {
  /** Files to which a process's number is written to make it join. */
  readonly procs: readonly string[];
  /** Sets the bounds; 0 lifts one. */
  configure(limits: LimitValues): void | Promise<void>;
  /** What is set; no bound of memory is 0. */
  bounds(): { memoryBytes: number; pids: number | "max" };
  /** How many processes the kernel has killed in it because memory was exhausted. */
  oomKills(): number;
  usage(): CgroupUsage;
  /** Resolves when it is gone. Its processes must be gone or going. */
  remove(): Promise<void>;
}

/** Control groups that this daemon can write. */
export interface Cgroups {
  readonly by: "cgroup v1" | "cgroup v2";
  readonly controls: { readonly memory: boolean; readonly pids: boolean; readonly cpu: boolean };
  make(id: string): Cgroup;
  /** One that an earlier daemon made. */
  find(id: string): Cgroup;
  /** All that there are, whoever made them. */
  list(): string[];
  /** Lets go of the group above all sandboxes' if none is left in it. */
  close(): void;
}
