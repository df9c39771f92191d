import type { Surroundings } from "@caisson/contract";
import type { Store } from "@caisson/store";
import type { ApprovalSettings } from "../approvals/index.ts";
import type { Driver, Launched } from "../driver/driver.ts";
import type { NetworkBounds } from "../egress/index.ts";
import type { DiskUse, FoundCgroups } from "../limits/index.ts";
import type { Guest, OutputSink } from "../link/guest.ts";
import type { Kind } from "../pool/entry.ts";
import type { Taken } from "../pool/pool.ts";
import type { SpecInit } from "./engine.ts";

/** Where sandboxes come from. */
export interface SandboxPool {
  take(kind: Kind): Promise<Taken>;
  /** One that waits, once nobody waits for anything, if there is one. */
  spare(kind: Kind): Promise<Taken | undefined>;
  /** Does one of this kind wait? */
  hasWaiting(kind: Kind): boolean;
  /** One that never waited: launched now, or woken from a machine that was parked. */
  fresh(kind: Kind): Promise<Taken>;
  /** Resolves once nobody waits for anything, or work never pauses. */
  quiet(): Promise<void>;
  /** Ends one that was taken and is not used. */
  discard(taken: Taken): void;
  /** Goes on with a saved machine. */
  launch(kind: Kind): Promise<{ id: string; dir: string; launched: Launched }>;
  /** Somebody waits for work of ours; call the result when it is done. */
  working(): () => void;
  /** Ends those that nobody has taken. */
  close(): Promise<void>;
}

/** Directory trees that may belong to somebody else; the keeper handles them. */
export interface Trees {
  /** Resolves with the number of bytes that were freed. */
  remove(path: string): Promise<number>;
  size(path: string): Promise<number>;
  measure(path: string): Promise<DiskUse>;
}

/** What a caller asked for, completed, its workspace as it was; throws what the policy forbids. */
export type CompleteSpec = (spec: SpecInit) => Promise<SpecInit>;

export type Log = (
  level: "debug" | "info" | "warn" | "error",
  message: string,
  fields?: Record<string, unknown>,
) => void;

/** What the configuration decides. Every field has a default. */
export interface EngineSettings {
  /** Custom profiles by name, as in the configuration. */
  profiles: Record<string, unknown>;
  /** Rules by kind of agent, as in the configuration. */
  agents: Record<string, unknown>;
  admission: AdmissionSettings;
  network: NetworkSettings;
  /** Secrets as in the configuration, and a file of certificates that hosts are verified with beside the host's own. */
  secrets: Record<string, unknown>;
  extraCa: string;
  /** Who is asked for what, and which rules answer. */
  approvals: Partial<ApprovalSettings>;
}

export interface NetworkSettings {
  /** What the machine's policy allows at most. Default: everything. */
  bounds: NetworkBounds;
  /** Name servers, as `address` or `address:port`. Default: the system's. */
  dnsServers: readonly string[];
}

export interface AdmissionSettings {
  /** Sandboxes alive at once. Default: 512. */
  sandboxes: number;
  /** Sum of their memory limits, in percent of the machine's memory. Default: 10 000. */
  memoryPercent: number;
  /** Sum of their processor limits, in percent of the machine's processors. Default: 10 000. */
  cpuPercent: number;
  /** Sandboxes that may wait for a place. Default: 256. */
  queue: number;
}

export const defaultSettings: EngineSettings = {
  profiles: {},
  agents: {},
  network: { bounds: {}, dnsServers: [] },
  admission: { sandboxes: 512, memoryPercent: 10_000, cpuPercent: 10_000, queue: 256 },
  approvals: {},
  secrets: {},
  extraCa: "",
};

/** What the engine is made from. */
export interface EngineParts {
  /** The data directory. */
  home: string;
  /** The guest binary, which also reads and applies what sandboxes changed. */
  guest: string;
  store: Store;
  /** Fastest first. */
  drivers: readonly Driver[];
  pool: SandboxPool;
  /** Control groups that this process can write, or why there are none. */
  cgroups: FoundCgroups;
  /** Opens the link to a sandbox that an earlier daemon started. */
  openGuest(launched: Launched, sinks: Iterable<readonly [stream: number, sink: OutputSink]>): Promise<Guest>;
  trees: Trees;
  /** Where a Docker engine is asked for images; throws with a clear word. Default: there is none. */
  engineSocket?(): string;
  /** Completes what a caller asks for by the configuration and holds it to the machine's policy. */
  complete?: CompleteSpec;
  /** The PATH and home directory of callers that bring none. Default: they have no toolchains. */
  surroundings?: Surroundings;
  /** TCP ports on which the daemon itself listens; no sandbox may reach them. */
  ownPorts?: () => readonly number[];
  settings?: Partial<EngineSettings>;
  log?: Log;
}

export type { Taken };
