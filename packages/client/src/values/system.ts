import type {
  DriverInfo as DriverInfoMessage,
  Finding as FindingMessage,
  GetCapabilitiesResponse,
  Key as KeyMessage,
  Preset as PresetMessage,
  Profile as ProfileMessage,
  Scope as ScopeNumber,
  UsageItem as UsageItemMessage,
} from "@caisson/contract";
import { type Limits, limitsFrom } from "./enforcement.ts";
import { enumName, toDate, toNumber } from "./numbers.ts";
import { type Tier, tierFrom } from "./sandbox.ts";

const levels = ["unspecified", "ok", "warning", "problem"] as const;
const scopes = ["unspecified", "public", "read", "write", "admin", "approve", "all"] as const;

export type FindingLevel = Exclude<(typeof levels)[number], "unspecified">;
export type Scope = "read" | "write" | "approve" | "admin" | "all";

export interface Driver {
  name: string;
  tier: Tier;
  usable: boolean;
  reason: string;
  fix: string;
  capabilities: string[];
  /** What it makes just now that its sandboxes will begin with; empty: nothing. */
  preparing: string;
}

export interface Capabilities {
  contract: string;
  revision: number;
  version: string;
  build: string;
  limits: Record<string, number>;
  drivers: Driver[];
}

export interface Finding {
  subject: string;
  level: FindingLevel;
  message: string;
  fix: string;
}

export interface Profile {
  name: string;
  description: string;
  limits: Limits;
  syscalls: string[];
  denyRead: string[];
  allowWrite: string[];
  env: Record<string, string>;
  network: string;
  toolchains: string;
  secrets: string[];
  caches: string[];
  explained: Record<string, string>;
}

/** A preset as it resolves now. */
export interface Preset {
  name: string;
  hosts: { rule: string; from: string; project: boolean }[];
  env: Record<string, string>;
  notes: string[];
}

export interface UsageItem {
  what: string;
  bytes: number;
  count: number;
  freeableBytes: number;
}

export interface Key {
  name: string;
  scopes: Scope[];
  createdAt: Date | undefined;
  expiresAt: Date | undefined;
  lastUsedAt: Date | undefined;
}

export function capabilitiesFrom(message: GetCapabilitiesResponse): Capabilities {
  const { contract, revision, version, build } = message;
  const limits = Object.fromEntries(
    Object.entries(message.limits).map(([name, value]) => [name, toNumber(value)]),
  );
  return { contract, revision, version, build, limits, drivers: message.drivers.map(driverFrom) };
}

function driverFrom({ $typeName: _, tier, ...driver }: DriverInfoMessage): Driver {
  return { ...driver, tier: tierFrom(tier) };
}

export function findingFrom({ subject, level, message, fix }: FindingMessage): Finding {
  return { subject, level: enumName(levels, level) as FindingLevel, message, fix };
}

export function profileFrom(message: ProfileMessage): Profile {
  const { $typeName, $unknown, limits, networkRules, ...plain } = message;
  return { ...plain, limits: limitsFrom(limits) };
}

export function presetFrom({ name, hosts, env, notes }: PresetMessage): Preset {
  return {
    name,
    hosts: hosts.map(({ rule, from, project }) => ({ rule, from, project })),
    env: { ...env },
    notes,
  };
}

export function usageItemFrom({ what, bytes, count, freeableBytes }: UsageItemMessage): UsageItem {
  return { what, bytes: toNumber(bytes), count, freeableBytes: toNumber(freeableBytes) };
}

export function keyFrom(message: KeyMessage): Key {
  return {
    name: message.name,
    scopes: message.scopes.map((scope) => enumName(scopes, scope) as Scope),
    createdAt: toDate(message.createdAt),
    expiresAt: toDate(message.expiresAt),
    lastUsedAt: toDate(message.lastUsedAt),
  };
}

export function scopeNumber(scope: Scope): ScopeNumber {
  return scopes.indexOf(scope) as ScopeNumber;
}
