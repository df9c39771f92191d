// Something that can run the probes behind a wall: each driver joins with one of these.
import type { Fixture } from "./fixture.ts";

export interface ProbeRun {
  fixture: Fixture;
  /** A program in the workspace's `programs`. */
  probe: string;
  /** Syscall groups beyond the base list. */
  syscalls: readonly string[];
}

export interface ProbeResult {
  exitCode: number;
  output: string;
  /** What went to standard error, for when it fails. */
  complaint: string;
}

/**
 * Runs a probe in a fresh sandbox: the workspace attached so that the host does not change and is the
 * working directory, the names of `denied` not readable; limits of about 256 processes, 1024 open files
 * and 64 MiB per private file system; CANARY and ABSTRACT in the environment, and where there are such
 * things, READONLY (`fixture.readOnly`, mounted read-only) and GUEST (the guest's program).
 */
export interface Wall {
  name: string;
  /** For `Circumstances.has`: `deny_read`, `read_only`, `guest_path`. */
  has: readonly string[];
  run(run: ProbeRun): Promise<ProbeResult>;
}
