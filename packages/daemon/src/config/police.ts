// Completes what a caller asks for by the configuration, and holds it to the machine's policy.
import { resolve, sep } from "node:path";
import { CaissonError, Tier } from "@caisson/contract";
import type { Engine, SpecInit } from "@caisson/sandbox";
import type { Config, Sourced } from "./config.ts";
import type { Policy } from "./policy.ts";
import type { SettingKey } from "./settings.ts";
import type { Trust } from "./trust.ts";

const tierNumbers = { container: Tier.CONTAINER, gvisor: Tier.GVISOR, microvm: Tier.MICROVM } as const;

/** The engine as callers may use it: every new sandbox is completed and bounded first. */
export function police(engine: Engine, config: Config, trust: Trust): Engine {
  const prepare = async (spec: SpecInit): Promise<SpecInit> => {
    const dir = spec.workspace?.dir ?? "";
    const { values } = await config.forProject(dir, (file) => trust.trusts(file));
    const completed = complete(spec, values);
    if (config.policy) bound(completed, config.policy);
    return completed;
  };
  return new Proxy(engine, {
    get(target, name) {
      if (name === "create") {
        const create: Engine["create"] = async (spec, options, call) =>
          target.create(await prepare(spec), options, call);
        return create;
      }
      if (name === "openSession") {
        const open: Engine["openSession"] = async (session, spec, call) =>
          target.openSession(session, await prepare(spec), call);
        return open;
      }
      const value = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function complete(spec: SpecInit, values: Map<SettingKey, Sourced>): SpecInit {
  const value = (key: SettingKey) => values.get(key)!.value;
  return {
    ...spec,
    profile: spec.profile || (spec.agent ? "" : (value("sandbox.profile") as string)),
    minimumTier: spec.minimumTier || tierNumbers[value("sandbox.minimum_tier") as keyof typeof tierNumbers],
    idleTtlS: spec.idleTtlS || (value("sandbox.idle_ttl_s") as number),
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
    const limits = { ...spec.limits };
    if (memory_bytes) limits.memoryBytes = least(limits.memoryBytes ?? 0n, BigInt(memory_bytes), 0n);
    if (cpu_millis) limits.cpuMillis = least(limits.cpuMillis ?? 0, cpu_millis, 0);
    if (pids) limits.pids = least(limits.pids ?? 0, pids, 0);
    if (timeout_ms) limits.timeoutMs = least(limits.timeoutMs ?? 0, timeout_ms, 0);
    spec.limits = limits as NonNullable<SpecInit["limits"]>;
  }
}

function least<T extends number | bigint>(asked: T, most: T, unset: T): T {
  return asked === unset || asked > most ? most : asked;
}

function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}
