// Completes what a caller asks for by the configuration, and holds it to the machine's policy.
import { resolve, sep } from "node:path";
import { create } from "@bufbuild/protobuf";
import { CaissonError, LimitsSchema, Tier } from "@caisson/contract";
import type { CompleteSpec, SpecInit } from "@caisson/sandbox";
import type { Config, Sourced } from "./config.ts";
import type { Policy } from "./policy.ts";
import type { SettingKey } from "./settings.ts";
import type { Trust } from "./trust.ts";

const tierNumbers = { container: Tier.CONTAINER, gvisor: Tier.GVISOR, microvm: Tier.MICROVM } as const;

/** Completes and bounds every new sandbox. */
export function completeSpec(config: Config, trust: Trust): CompleteSpec {
  return async (spec) => {
    const { values } = await config.forProject(spec.workspace?.dir ?? "", (file) => trust.trusts(file));
    const completed = complete(spec, values);
    if (config.policy) bound(completed, config.policy);
    return completed;
  };
}

function complete(spec: SpecInit, values: Map<SettingKey, Sourced>): SpecInit {
  const value = (key: SettingKey) => values.get(key)!.value;
  return {
    ...spec,
    profile: spec.profile || (spec.agent ? "" : (value("sandbox.profile") as string)),
    minimumTier: spec.minimumTier || tierNumbers[value("sandbox.minimum_tier") as keyof typeof tierNumbers],
    idleTtlS: spec.idleTtlS || (value("sandbox.idle_ttl_s") as number),
    toolchains: spec.toolchains || (value("sandbox.toolchains") === "off" ? "off" : ""),
    env: { ...(value("sandbox.env") as Record<string, string>), ...spec.env },
  };
}

/** Raises the tier and lowers the limits to the policy's; what cannot be bounded so is refused. */
function bound(spec: SpecInit, policy: Policy): void {
  const forbid = (what: string): never => {
    throw new CaissonError("POLICY_FORBIDS", `the machine's policy does not allow ${what}`);
  };
  if (policy.minimum_tier) {
    const least = tierNumbers[policy.minimum_tier];
    if ((spec.minimumTier ?? 0) < least) spec.minimumTier = least;
  }
  if (policy.profiles && !policy.profiles.includes(spec.profile || "moderate"))
    forbid(`the profile ${spec.profile}`);
  for (const group of spec.syscalls ?? []) {
    if (policy.syscalls && !policy.syscalls.includes(group)) forbid(`the syscall group ${group}`);
  }
  const dir = spec.workspace?.dir;
  if (policy.workspaces && dir && !policy.workspaces.some((root) => isBelow(resolve(dir), resolve(root)))) {
    forbid("a workspace outside the directories it names");
  }
  if (policy.limits) {
    const { memory_bytes, cpu_millis, pids, timeout_ms } = policy.limits;
    const limits = create(LimitsSchema, spec.limits);
    if (memory_bytes) limits.memoryBytes = least(limits.memoryBytes, BigInt(memory_bytes), 0n);
    if (cpu_millis) limits.cpuMillis = least(limits.cpuMillis, cpu_millis, 0);
    if (pids) limits.pids = least(limits.pids, pids, 0);
    if (timeout_ms) limits.timeoutMs = least(limits.timeoutMs, timeout_ms, 0);
    spec.limits = limits;
  }
}

function least<T extends number | bigint>(asked: T, most: T, unset: T): T {
  return asked === unset || asked > most ? most : asked;
}

function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}
