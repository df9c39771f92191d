import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  Sandbox as SandboxMessage,
  SandboxSpecSchema,
  Stats as StatsMessage,
  Tier as TierNumber,
  WorkspaceMode as WorkspaceModeNumber,
} from "@caisson/contract";
import { type Enforcement, enforcementFrom, type Limits, limitsInit } from "./enforcement.ts";
import { type Network, networkFrom, networkInit } from "./network.ts";
import { enumName, toDate, toNumber, toSeconds } from "./numbers.ts";

const tiers = ["unspecified", "container", "gvisor", "microvm", "strongest"] as const;
/** Names that others use for tiers. */
const tierAliases = { docker: "container", firecracker: "microvm" } as const;
const states = ["unspecified", "queued", "starting", "ready", "stopping", "ended"] as const;
const modes = ["unspecified", "none", "overlay", "bind", "copy", "bind-write"] as const;

export type Tier = Exclude<(typeof tiers)[number], "unspecified" | "strongest">;
/** The least tier that will do; `docker` means container and `firecracker` microvm. */
export type TierWish = Tier | "strongest" | keyof typeof tierAliases;
export type SandboxState = Exclude<(typeof states)[number], "unspecified">;
export type WorkspaceMode = Exclude<(typeof modes)[number], "unspecified">;

export interface Workspace {
  /** A directory on the daemon's host; in Node, relative ones are taken from the current directory. */
  dir: string;
  /** Default: `overlay`. */
  mode?: WorkspaceMode | undefined;
}

/** What a sandbox is made from. Everything has a default. */
export interface SandboxSpec {
  /** The least isolation that is acceptable. Default: `container`. */
  tier?: TierWish | undefined;
  /** A driver by name instead of a choice by tier. */
  driver?: string | undefined;
  /** Default: `moderate`. */
  profile?: string | undefined;
  /** The host's own programs, an imported image by name or id, or a directory by its absolute path. Default: `host`. */
  image?: string | undefined;
  /** Default: none. */
  workspace?: Workspace | undefined;
  limits?: Limits | undefined;
  /** Variables for every command. */
  env?: Record<string, string> | undefined;
  labels?: Record<string, string> | undefined;
  /** Ends the sandbox when nothing has run in it for so long, in milliseconds. Default: 1 hour. */
  idleTtl?: number | undefined;
  /** Ends the sandbox at this age, in milliseconds. Default: 24 hours. */
  maxAge?: number | undefined;
  /** Syscall groups beyond the profile's: `debug`, `nested`. */
  syscalls?: string[] | undefined;
  /** What kind of agent works here. */
  agent?: string | undefined;
  /** Names of secrets that it gets: a placeholder inside, the value in requests to their hosts. */
  secrets?: string[] | undefined;
  /** The developer's own toolchains on the host: those that the caller's PATH uses, or none. Default: the profile's. */
  toolchains?: "auto" | "off" | undefined;
  /** What it may reach. Default: what configuration and profile say. */
  network?: Network | undefined;
  /** Who commits inside; nothing of the host's git configuration is taken. Default: nobody. */
  git?: { name: string; email: string } | undefined;
  /** Private caches that are kept for the project: `npm`, `cargo`, `pip`, `go`, `maven` or `all`. Default: none. */
  caches?: string[] | undefined;
  /** Begin with what a snapshot holds: its id, or a template's name. */
  snapshot?: string | undefined;
}

export interface Sandbox {
  id: string;
  session: string;
  state: SandboxState;
  endReason: string;
  endMessage: string;
  tier: Tier;
  driver: string;
  profile: string;
  image: string;
  workspace: Workspace | undefined;
  workdir: string;
  labels: Record<string, string>;
  enforced: Enforcement | undefined;
  createdAt: Date | undefined;
  readyAt: Date | undefined;
  endedAt: Date | undefined;
  expiresAt: Date | undefined;
  /** The number of its latest event. */
  seq: number;
  agent: string;
  /** Its commands hold still until it is resumed. */
  paused: boolean;
  /** The rules in force. */
  network: Network | undefined;
}

export interface Stats {
  cpuMs: number;
  memoryBytes: number;
  memoryPeakBytes: number;
  pids: number;
  diskBytes: number;
  running: number;
  source: string;
}

export function sandboxFrom(message: SandboxMessage): Sandbox {
  const { workspace } = message;
  return {
    id: message.id,
    session: message.session,
    state: enumName(states, message.state) as SandboxState,
    endReason: message.endReason,
    endMessage: message.endMessage,
    tier: tierFrom(message.tier),
    driver: message.driver,
    profile: message.profile,
    image: message.image,
    workspace: workspaceFrom(workspace),
    workdir: message.workdir,
    labels: { ...message.labels },
    enforced: enforcementFrom(message.enforced),
    createdAt: toDate(message.createdAt),
    readyAt: toDate(message.readyAt),
    endedAt: toDate(message.endedAt),
    expiresAt: toDate(message.expiresAt),
    seq: toNumber(message.seq),
    agent: message.agent,
    paused: message.paused,
    network: message.network && networkFrom(message.network),
  };
}

export function workspaceFrom(workspace: SandboxMessage["workspace"]): Workspace | undefined {
  return workspace && { dir: workspace.dir, mode: enumName(modes, workspace.mode) as WorkspaceMode };
}

export function tierFrom(tier: number): Tier {
  return enumName(tiers, tier) as Tier;
}

function tierInit(tier: TierWish): TierNumber {
  const name = Object.hasOwn(tierAliases, tier) ? tierAliases[tier as keyof typeof tierAliases] : tier;
  return numberOf<TierNumber>(tiers, name);
}

export function specInit(spec: SandboxSpec): MessageInitShape<typeof SandboxSpecSchema> {
  const init: MessageInitShape<typeof SandboxSpecSchema> = {};
  if (spec.tier) init.minimumTier = tierInit(spec.tier);
  if (spec.driver) init.driver = spec.driver;
  if (spec.profile) init.profile = spec.profile;
  if (spec.image) init.image = spec.image;
  if (spec.workspace) init.workspace = workspaceInit(spec.workspace);
  if (spec.limits) init.limits = limitsInit(spec.limits);
  if (spec.env) init.env = spec.env;
  if (spec.labels) init.labels = spec.labels;
  if (spec.idleTtl) init.idleTtlS = toSeconds(spec.idleTtl);
  if (spec.maxAge) init.maxAgeS = toSeconds(spec.maxAge);
  if (spec.syscalls) init.syscalls = spec.syscalls;
  if (spec.agent) init.agent = spec.agent;
  if (spec.secrets) init.secrets = spec.secrets;
  if (spec.toolchains) init.toolchains = spec.toolchains;
  if (spec.snapshot) init.snapshot = spec.snapshot;
  if (spec.network) init.network = networkInit(spec.network);
  if (spec.git) init.git = spec.git;
  if (spec.caches) init.caches = spec.caches;
  return init;
}

function workspaceInit({ dir, mode }: Workspace) {
  return { dir: absolute(dir), mode: mode ? numberOf<WorkspaceModeNumber>(modes, mode) : 0 } as const;
}

function absolute(dir: string): string {
  if (dir === "" || dir.startsWith("/") || typeof process === "undefined") return dir;
  return process.getBuiltinModule("node:path").resolve(dir);
}

/** An unknown name goes to the server as an unknown number, so that it is refused there and not ignored. */
function numberOf<T extends number>(names: readonly string[], name: string): T {
  const index = names.indexOf(name);
  return (index > 0 ? index : 0x7fff) as T;
}

export function statsFrom(message: StatsMessage): Stats {
  return {
    cpuMs: message.cpuMs,
    memoryBytes: toNumber(message.memoryBytes),
    memoryPeakBytes: toNumber(message.memoryPeakBytes),
    pids: message.pids,
    diskBytes: toNumber(message.diskBytes),
    running: message.running,
    source: message.source,
  };
}
