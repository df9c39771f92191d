import { CaissonError, type Network } from "@caisson/contract";
import { covers, type NetworkBounds, type NetworkMode, parseRule } from "../../egress/index.ts";
import type { PresetOutcome } from "../../presets/index.ts";
import type { SandboxProfile } from "../../profiles/index.ts";
import { mergeNetworkLimits, modeOf, type NetworkRecord, offline } from "./record.ts";

const maxRules = 1000;

/** The rules to which presets lead for whoever asks, and what their tools are told inside. */
export type ResolvePresets = (names: readonly string[]) => Promise<PresetOutcome>;

export interface NetworkPlanning {
  bounds: NetworkBounds;
  resolvePresets: ResolvePresets;
}

/** What a new sandbox may reach: what was asked for and what its profile gives, within the machine's bounds. */
export async function planNetwork(
  asked: Network | undefined,
  profile: SandboxProfile,
  parts: NetworkPlanning,
): Promise<NetworkRecord> {
  const { networkRules: given } = profile;
  const names = asked !== undefined && asked.allow.length + asked.presets.length > 0;
  const askedMode = asked && modeOf(asked.mode);
  // Whoever names what to reach and says nothing else wants to reach it.
  const mode =
    askedMode ?? (names && profile.network === "off" ? "allow" : bounded(profile.network, parts.bounds));
  return completeNetwork(
    {
      mode,
      allow: union(asked?.allow, given.allow),
      deny: union(asked?.deny, given.deny),
      presets: union(asked?.presets, given.presets),
      presetRules: [],
      limits: mergeNetworkLimits(asked?.limits, offline.limits),
    },
    parts,
  );
}

/** Checks rules and bounds and looks the presets up. */
export async function completeNetwork(
  record: NetworkRecord,
  { bounds, resolvePresets }: NetworkPlanning,
): Promise<NetworkRecord> {
  if (record.allow.length + record.deny.length > maxRules)
    throw new CaissonError("INVALID_INPUT", `there may be at most ${maxRules} network rules`);
  const allow = record.allow.map(parseRule);
  record.deny.forEach(parseRule);
  const forbid = (what: string): never => {
    throw new CaissonError("POLICY_FORBIDS", `the machine's policy does not allow ${what}`);
  };
  if (bounds.modes && !bounds.modes.includes(record.mode)) forbid(`the network mode ${record.mode}`);
  const only = bounds.only?.map(parseRule);
  for (const rule of allow) {
    if (only && !only.some((outer) => covers(outer, rule))) forbid(`the network rule ${rule.text}`);
  }
  if (record.presets.length > 16) throw new CaissonError("INVALID_INPUT", "there may be at most 16 presets");
  if (record.presets.length === 0) return record;
  const led = await resolvePresets(record.presets);
  const { allow: found, env: presetEnv, files: presetFiles } = led;
  return { ...record, presetRules: found.slice(0, maxRules), presetEnv, presetFiles };
}

/** A default that the machine does not allow gives way; what was asked for is refused instead. */
function bounded(mode: NetworkMode, { modes }: NetworkBounds): NetworkMode {
  return modes && !modes.includes(mode) ? "off" : mode;
}

export function union(a: readonly string[] = [], b: readonly string[] = []): string[] {
  return [...new Set([...a, ...b])];
}
