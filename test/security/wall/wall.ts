// Something that can run the probes behind a wall: each driver joins with one of these.
import type { Fixture } from "./fixture.ts";

export interface Ground {
  fixture: Fixture;
  /** Syscall groups beyond the base list. */
  syscalls: readonly string[];
}

export interface ProbeResult {
  exitCode: number;
  output: string;
  /** What went to standard error, for when it fails. */
  complaint: string;
}

export interface Wall {
  name: string;
  /** For the judgement's `has`: `deny_read`, `read_only`, `guest_path`. */
  has: readonly string[];
  /** Makes ready what all probes share. */
  open(ground: Ground): Promise<OpenWall>;
}

export interface OpenWall extends AsyncDisposable {
  /**
   * Runs a program of the workspace's `programs` in a fresh sandbox: the workspace attached so that the host does not change and is
   * the working directory, the names of `denied` not readable; limits of about 256 processes, 1024 open files
   * and 64 MiB per private file system; CANARY and ABSTRACT in the environment, and where there are such
   * things, READONLY (`fixture.readOnly`, mounted read-only) and GUEST (the guest's program).
   */
  run(probe: string): Promise<ProbeResult>;
}
