import type { SandboxState, Tier, WorkspaceMode } from "@caisson/contract";
import type { LaunchRecord } from "../driver/driver.ts";
import type { LimitValues } from "../limits/index.ts";
import type { NetworkRecord } from "./network/index.ts";

/** Kinds of values in the store. */
export const kinds = {
  /** Living sandboxes: what a new daemon has to look for. */
  sandbox: "sandbox",
  /** Ended ones, until they are forgotten. */
  ended: "ended",
  process: "process",
  /** Small outputs, kept with their process. */
  output: "output",
  /** Standard input that a process was started with, until it has exited. */
  stdin: "stdin",
  /** Enforcement reports by their hash: most sandboxes have the same one. */
  enforcement: "enforcement",
  idempotency: "idempotency",
  /** Forwards that outlive their caller, by `SANDBOX/fw_…`. */
  forward: "forward",
  /** What is known of each snapshot, by its id. */
  snapshot: "snapshot",
} as const;

/** What is kept of a sandbox, as JSON. Times are milliseconds since the epoch; 0: not yet. */
export interface SandboxRecord {
  id: string;
  /** The pooled sandbox that it was made from: names its directory and control group. */
  place: string;
  session: string;
  state: SandboxState;
  endReason: string;
  endMessage: string;
  tier: Tier;
  driver: string;
  profile: string;
  image: string;
  /** Caches of the project's that it writes to. */
  caches?: string[];
  /** Of an image of the store: its id. */
  imageId?: string;
  /** `transferred`: it travels over the link instead of being mounted. */
  workspace: {
    dir: string;
    mode: WorkspaceMode;
    transferred?: boolean;
    /** What may not be read of a project that was sent in: names in it that were not. */
    withheld?: string[];
  };
  workdir: string;
  labels: Record<string, string>;
  agent: string;
  limits: LimitValues;
  /** What it may reach; nothing if there is none. */
  network?: NetworkRecord;
  idleTtlS: number;
  maxAgeS: number;
  createdAt: number;
  readyAt: number;
  endedAt: number;
  /** A number of the log: its latest event is this one or a later one. */
  seq: number;
  /** Key of its enforcement report. */
  enforcement: string;
  /** The spec as it was asked for, as JSON of the contract. */
  spec: unknown;
  /** Who asked for it. */
  actor: string;
  /** Ends when this process has exited. */
  runs: string;
  /** Number of the latest process. */
  lastProcess: number;
  launch: LaunchRecord | undefined;
  /** Its commands hold still. */
  paused?: boolean;
  /** Of the host when the sandbox was started. */
  bootId: string;
}

export interface ExitRecord {
  code: number;
  signal: string;
  timedOut: boolean;
  oomKilled: boolean;
  diskExceeded?: boolean;
  projectTouched?: boolean;
  truncated: boolean;
  durationMs: number;
  userMs: number;
  systemMs: number;
  maxRssBytes: number;
  lost: string;
}

/** What is kept of a process. Its key is `SANDBOX/pN`. */
export interface ProcessRecord {
  id: string;
  sandboxId: string;
  stream: number;
  argv: string[];
  cwd: string;
  hasTerminal: boolean;
  /** Standard input was left open for WriteStdin. */
  keepStdin: boolean;
  /** Who started it. */
  actor: string;
  /** The event of its start is in the log. */
  announced: boolean;
  startedAt: number;
  endedAt: number;
  exit: ExitRecord | undefined;
  /** Output bytes in all, known once it has exited. */
  seq: number;
  firstKeptSeq: number;
}

export function processKey(sandboxId: string, processId: string): string {
  return `${sandboxId}/${processId}`;
}
