// Completes what a caller asks for by the configuration, and holds it to the machine's policy.
import { realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { create } from "@bufbuild/protobuf";
import {
  CaissonError,
  type GitIdentity,
  GitIdentitySchema,
  LimitsSchema,
  Tier,
  WorkspaceMode,
} from "@caisson/contract";
import { type CompleteSpec, Profiles, type SpecInit } from "@caisson/sandbox";
import type { Config, Sourced } from "./config.ts";
import { completeNetwork } from "./network.ts";
import type { Policy } from "./policy.ts";
import type { SettingKey } from "./settings.ts";
import type { Trust } from "./trust.ts";

const tierNumbers = { container: Tier.CONTAINER, gvisor: Tier.GVISOR, microvm: Tier.MICROVM } as const;

/** Completes and bounds every new sandbox. */
export function completeSpec(config: Config, trust: Trust): CompleteSpec {
  const { policy } = config;
  const profiles = new Profiles(config.table("profiles"), config.table("agents"));
  return async (spec) => {
    const { values } = await config.forProject(spec.workspace?.dir ?? "", (file) => trust.trusts(file));
    const completed = complete(spec, values);
    const profile = profileOf(completed, profiles);
    completed.network = completeNetwork(spec.network, values, profile.network);
    completed.secrets = [...new Set([...(completed.secrets ?? []), ...profile.secrets])];
    // They belong to a project; without one there is nothing to keep.
    if (spec.workspace?.dir)
      completed.caches = [...new Set([...(completed.caches ?? []), ...profile.caches])];
    if (policy) await bound(completed, policy, profiles);
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
    image: spec.image || (value("sandbox.image") as string),
    toolchains: spec.toolchains || (value("sandbox.toolchains") === "off" ? "off" : ""),
    ...gitOf(spec, value("sandbox.git_name") as string, value("sandbox.git_email") as string),
    ...(spec.caches?.length || !spec.workspace?.dir ? {} : { caches: value("sandbox.caches") as string[] }),
    env: { ...(value("sandbox.env") as Record<string, string>), ...spec.env },
  };
}

/** What a request leaves out of its identity comes from the configuration. */
function gitOf(spec: SpecInit, name: string, email: string): { git?: GitIdentity } {
  const git = create(GitIdentitySchema, {
    name: spec.git?.name || name,
    email: spec.git?.email || email,
  });
  return git.name || git.email ? { git } : {};
}

/** Raises the tier and lowers the limits to the policy's; what cannot be bounded so is refused. */
async function bound(spec: SpecInit, policy: Policy, profiles: Profiles): Promise<void> {
  const forbid = (what: string): never => {
    throw new CaissonError("POLICY_FORBIDS", `the machine's policy does not allow ${what}`);
  };
  if (policy.minimum_tier) {
    const least = tierNumbers[policy.minimum_tier];
    if ((spec.minimumTier ?? 0) < least) spec.minimumTier = least;
  }
  const profile = profileOf(spec, profiles);
  if (policy.profiles && !policy.profiles.includes(profile.name)) forbid(`the profile ${profile.name}`);
  for (const group of [...profile.syscalls, ...(spec.syscalls ?? [])]) {
    if (policy.syscalls && !policy.syscalls.includes(group)) forbid(`the syscall group ${group}`);
  }
  if (policy.toolchains === false) {
    if (spec.toolchains === "auto") forbid("toolchains of the host");
    spec.toolchains = "off";
  }
  if (policy.bind_write === false && spec.workspace?.mode === WorkspaceMode.BIND_WRITE)
    forbid("a project that is written directly");
  for (const name of spec.secrets ?? []) {
    if (policy.secrets && !policy.secrets.includes(name)) forbid(`the secret ${name}`);
  }
  const dir = spec.workspace?.dir;
  if (policy.workspaces && dir) {
    const [place, ...roots] = await Promise.all([dir, ...policy.workspaces].map(real));
    if (!roots.some((root) => isBelow(place!, root))) forbid("a workspace outside the directories it names");
  }
  // A directory of the host is shown either way.
  if (policy.workspaces && spec.image?.startsWith("/")) {
    const [place, ...roots] = await Promise.all([spec.image, ...policy.workspaces].map(real));
    if (!roots.some((root) => isBelow(place!, root))) forbid("an image outside the directories it names");
  }
  if (policy.limits) {
    const { memory_bytes, cpu_millis, pids, disk_bytes, timeout_ms } = policy.limits;
    const limits = create(LimitsSchema, spec.limits);
    // What a request does not name is the profile's; the policy lowers that too, and never raises it.
    const { memoryBytes, diskBytes, ...other } = profile.limits;
    // A number that nobody named stays unnamed where it is within the policy: a named one decides how large a machine is.
    const isWithin = limits.memoryBytes === 0n && memoryBytes !== 0 && memoryBytes <= (memory_bytes ?? 0);
    if (memory_bytes && !isWithin)
      limits.memoryBytes = least(limits.memoryBytes || BigInt(memoryBytes), BigInt(memory_bytes), 0n);
    if (disk_bytes) limits.diskBytes = least(limits.diskBytes || BigInt(diskBytes), BigInt(disk_bytes), 0n);
    if (cpu_millis) limits.cpuMillis = least(limits.cpuMillis || other.cpuMillis, cpu_millis, 0);
    if (pids) limits.pids = least(limits.pids || other.pids, pids, 0);
    if (timeout_ms) limits.timeoutMs = least(limits.timeoutMs || other.timeoutMs, timeout_ms, 0);
    spec.limits = limits;
  }
}

/** The one that it will really have: that of the rule for its kind of agent, or another one once it is approved. */
function profileOf(spec: SpecInit, profiles: Profiles) {
  return profiles.get(spec.profile || profiles.ruleFor(spec.agent ?? "")?.profile || "");
}

function least<T extends number | bigint>(asked: T, most: T, unset: T): T {
  return asked === unset || asked > most ? most : asked;
}

/** Where a path really leads; what is not there is named as it is, and refused later. */
async function real(path: string): Promise<string> {
  return await realpath(path).catch(() => resolve(path));
}

function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}
