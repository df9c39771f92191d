import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  NetworkDecision as DecisionMessage,
  Network as NetworkMessage,
  NetworkMode as NetworkModeNumber,
  NetworkSchema,
} from "@caisson/contract";
import { enumName, toDate, toNumber } from "./numbers.ts";

const modes = ["unspecified", "off", "allow", "ask", "on"] as const;

export type NetworkMode = Exclude<(typeof modes)[number], "unspecified">;

/** Bounds on a sandbox's connections; times in milliseconds. */
export interface NetworkLimits {
  /** Open at once. Default: 1024. */
  connections?: number | undefined;
  /** New ones per second; twice as many in a burst. Default: 200. */
  connectionsPerSecond?: number | undefined;
  /** In both directions together, over the sandbox's life. Default: no bound. */
  bytes?: number | undefined;
  /** Without a byte in either direction. Default: 10 minutes. */
  idleTimeout?: number | undefined;
  /** From the name to an open connection. Default: 15 seconds. */
  connectTimeout?: number | undefined;
}

/** What a sandbox may reach. Rules are texts: `example.com`, `*.example.com`, `10.1.0.0/16`, each with `:port` if wanted. */
export interface Network {
  /** Default: what configuration and profile say; `allow` if there are rules. */
  mode?: NetworkMode | undefined;
  allow?: readonly string[] | undefined;
  /** Beats `allow`. */
  deny?: readonly string[] | undefined;
  /** Such as `npm`: what the caller's own tools are configured for. */
  presets?: readonly string[] | undefined;
  limits?: NetworkLimits | undefined;
}

/** One connection that was allowed or refused. */
export interface NetworkDecision {
  seq: number;
  at: Date | undefined;
  sandboxId: string;
  allowed: boolean;
  name: string;
  port: number;
  /** The address that was dialled, or that was the reason. */
  address: string;
  /** What decided. */
  rule: string;
  /** Why, and of a refusal, what to add to allow it. */
  reason: string;
  via: string;
  /** How many equal ones this stands for. */
  count: number;
  sentBytes: number;
  receivedBytes: number;
  open: boolean;
}

export function networkFrom(message: NetworkMessage): Network & { mode: NetworkMode } {
  const { limits } = message;
  return {
    mode: enumName(modes, message.mode) as NetworkMode,
    allow: [...message.allow],
    deny: [...message.deny],
    presets: [...message.presets],
    limits: limits && {
      connections: limits.connections,
      connectionsPerSecond: limits.connectionsPerSecond,
      bytes: toNumber(limits.bytes) || undefined,
      idleTimeout: limits.idleTimeoutMs,
      connectTimeout: limits.connectTimeoutMs,
    },
  };
}

export function networkInit(network: Network): MessageInitShape<typeof NetworkSchema> {
  return {
    mode: networkModeNumber(network.mode),
    allow: [...(network.allow ?? [])],
    deny: [...(network.deny ?? [])],
    presets: [...(network.presets ?? [])],
    ...networkLimitsInit(network.limits),
  };
}

export function networkLimitsInit(limits: NetworkLimits | undefined) {
  if (!limits) return {};
  return {
    limits: {
      connections: limits.connections ?? 0,
      connectionsPerSecond: limits.connectionsPerSecond ?? 0,
      bytes: BigInt(limits.bytes ?? 0),
      idleTimeoutMs: limits.idleTimeout ?? 0,
      connectTimeoutMs: limits.connectTimeout ?? 0,
    },
  };
}

/** An unknown name goes to the server as an unknown number, so that it is refused there and not ignored. */
export function networkModeNumber(mode: NetworkMode | undefined): NetworkModeNumber {
  if (mode === undefined) return 0;
  const index = modes.indexOf(mode);
  return (index > 0 ? index : 0x7fff) as NetworkModeNumber;
}

export function decisionFrom(message: DecisionMessage): NetworkDecision {
  return {
    seq: toNumber(message.seq),
    at: toDate(message.at),
    sandboxId: message.sandboxId,
    allowed: message.verdict === 1,
    name: message.name,
    port: message.port,
    address: message.address,
    rule: message.rule,
    reason: message.reason,
    via: message.via,
    count: message.count,
    sentBytes: toNumber(message.sentBytes),
    receivedBytes: toNumber(message.receivedBytes),
    open: message.open,
  };
}
