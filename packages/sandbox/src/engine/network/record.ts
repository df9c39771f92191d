import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  CaissonError,
  type Mechanism,
  MechanismSchema,
  MechanismState,
  type NetworkMode as ModeNumber,
  type Network,
  type NetworkLimits,
  NetworkSchema,
} from "@caisson/contract";
import { defaultLimits, type EgressLimits, type NetworkMode } from "../../egress/index.ts";

/** What is kept of a sandbox's network, as JSON. */
export interface NetworkRecord {
  mode: NetworkMode;
  allow: string[];
  deny: string[];
  presets: string[];
  /** What the presets have led to. */
  presetRules: string[];
  /** Variables by which the tools inside find what the presets have led to. */
  presetEnv?: Record<string, string>;
  /** The same as files in the home directory. */
  presetFiles?: { path: string; content: string }[];
  limits: EgressLimits;
}

export const offline: Readonly<NetworkRecord> = {
  mode: "off",
  allow: [],
  deny: [],
  presets: [],
  presetRules: [],
  limits: defaultLimits,
};

const modes: readonly (NetworkMode | undefined)[] = [undefined, "off", "allow", "ask", "on"];

/** The mode by its number; undefined for the default. */
export function modeOf(number: ModeNumber): NetworkMode | undefined {
  if (number < modes.length) return modes[number];
  throw new CaissonError("INVALID_INPUT", "network.mode is not a mode");
}

export function numberOf(mode: NetworkMode): ModeNumber {
  return modes.indexOf(mode) as ModeNumber;
}

/** As the contract shows it. */
export function toNetwork(record: NetworkRecord): Network {
  const { limits } = record;
  const init: MessageInitShape<typeof NetworkSchema> = {
    mode: numberOf(record.mode),
    allow: record.allow,
    deny: record.deny,
    presets: record.presets,
    limits: { ...limits, bytes: BigInt(limits.bytes) },
  };
  return create(NetworkSchema, init);
}

export function mergeNetworkLimits(asked: NetworkLimits | undefined, base: EgressLimits): EgressLimits {
  if (!asked) return base;
  if (asked.bytes > BigInt(Number.MAX_SAFE_INTEGER))
    throw new CaissonError("INVALID_INPUT", "network.limits.bytes is too large");
  return {
    connections: asked.connections || base.connections,
    connectionsPerSecond: asked.connectionsPerSecond || base.connectionsPerSecond,
    bytes: Number(asked.bytes) || base.bytes,
    idleTimeoutMs: asked.idleTimeoutMs || base.idleTimeoutMs,
    connectTimeoutMs: asked.connectTimeoutMs || base.connectTimeoutMs,
  };
}

/** For the enforcement report. */
export function networkMechanism({ mode, allow, presetRules }: NetworkRecord): Mechanism {
  const count = allow.length + presetRules.length;
  const compared =
    "by name and by dialled address; TLS by its server name, plain HTTP by every Host; what is inside TLS is not read, unless it is opened for secrets";
  const details: Record<NetworkMode, string> = {
    off: "no connection leaves",
    allow: `only what ${count} rule${count === 1 ? "" : "s"} allow${count === 1 ? "s" : ""}, ${compared}`,
    ask: `what rules or answers allow, ${compared}`,
    on: "everything but what rules deny, and private, loopback, link-local, multicast and metadata addresses",
  };
  return create(MechanismSchema, {
    name: "network",
    state: MechanismState.ENFORCED,
    by: "the daemon's door",
    detail: details[mode],
  });
}
