// Something that can run the probes behind a wall: each driver joins with one of these.
import type { Fixture } from "./fixture.ts";

export interface ProbeRun {
  fixture: Fixture;
  /** A program of `fixture.programs`. */
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
 * working directory, `fixture.readOnly` mounted read-only, the names of `denied` not readable; limits of
 * about 256 processes, 1024 open files, 64 MiB and 100,000 inodes per private file system; and CANARY,
 * READONLY, ABSTRACT and, where it is known, GUEST in the environment.
 */
export interface Wall {
  name: string;
  /** For `Circumstances.has`. */
  has: readonly string[];
  run(run: ProbeRun): Promise<ProbeResult>;
}
