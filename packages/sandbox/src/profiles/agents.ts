import { CaissonError, Tier } from "@caisson/contract";

/** What a kind of agent gets at least. */
export interface AgentRule {
  minimumTier: Tier;
  /** A profile's name, or empty for no rule. */
  profile: string;
}

/** A tier's number by its name in configuration and reports. */
export const tierNames = { container: Tier.CONTAINER, gvisor: Tier.GVISOR, microvm: Tier.MICROVM } as const;

export function tierName(tier: Tier): string {
  return Object.entries(tierNames).find(([, number]) => number === tier)?.[0] ?? "container";
}

/** Reads `agents` of the configuration: `{ claude-code: { minimum_tier: gvisor, profile: restrictive } }`. */
export function agentRules(
  config: Record<string, unknown>,
  isProfile: (name: string) => boolean,
): Map<string, AgentRule> {
  return new Map(Object.entries(config).map(([kind, value]) => [kind, agentRule(kind, value, isProfile)]));
}

function agentRule(kind: string, value: unknown, isProfile: (name: string) => boolean): AgentRule {
  const wrong = (why: string) => new CaissonError("CONFIG_INVALID", `agents.${kind} ${why}`);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong("must be a table");
  const { minimum_tier: tier = "container", profile = "", ...others } = value as Record<string, unknown>;
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw wrong(`has an unknown key ${unknown}`);
  if (typeof tier !== "string" || !Object.hasOwn(tierNames, tier)) {
    throw wrong(`has a minimum_tier that is none of ${Object.keys(tierNames).join(", ")}`);
  }
  if (typeof profile !== "string" || (profile !== "" && !isProfile(profile)))
    throw wrong("names no profile that there is");
  return { minimumTier: tierNames[tier as keyof typeof tierNames], profile };
}
