import { CaissonError, checkPath } from "@caisson/contract";
import { isNetworkMode, type NetworkMode, networkModes, parseRule } from "../egress/index.ts";
import type { LimitName, LimitValues } from "../limits/values.ts";
import {
  isSyscallGroup,
  isToolchainMode,
  type NetworkRules,
  type SandboxProfile,
  type SyscallGroup,
  syscallGroups,
  toolchainModes,
} from "./profile.ts";

/** Keys of `limits` in the configuration. */
const limitKeys: Readonly<Record<string, LimitName>> = {
  cpu_millis: "cpuMillis",
  memory_bytes: "memoryBytes",
  pids: "pids",
  disk_bytes: "diskBytes",
  open_files: "openFiles",
  output_bytes: "outputBytes",
  timeout_ms: "timeoutMs",
};

const keys = [
  "extends",
  "description",
  "limits",
  "syscalls",
  "deny_read",
  "allow_write",
  "env",
  "network",
  "toolchains",
  "secrets",
  "caches",
];

/** A profile of the configuration: another one with some options changed. */
export function customProfile(
  name: string,
  value: unknown,
  known: ReadonlyMap<string, SandboxProfile>,
): SandboxProfile {
  const at = `profiles.${name}`;
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(name)) throw invalid(at, "is not a name of `[a-z0-9._-]`");
  const options = record(value, at);
  for (const key of Object.keys(options)) {
    if (!keys.includes(key)) throw invalid(`${at}.${key}`, `is not known; there are ${keys.join(", ")}`);
  }
  const parentName = text(options.extends ?? "moderate", `${at}.extends`);
  const parent = known.get(parentName);
  if (!parent) throw invalid(`${at}.extends`, `names no profile: ${parentName}`);
  const network = networkOf(options.network, parent, `${at}.network`);
  const toolchains = options.toolchains ?? parent.toolchains;
  if (!isToolchainMode(toolchains))
    throw invalid(`${at}.toolchains`, `can be ${toolchainModes.join(" or ")}`);
  return {
    name,
    description: text(options.description ?? parent.description, `${at}.description`),
    limits: limitsOf(options.limits, parent.limits, `${at}.limits`),
    syscalls: options.syscalls === undefined ? parent.syscalls : groupsOf(options.syscalls, `${at}.syscalls`),
    denyRead:
      options.deny_read === undefined ? parent.denyRead : pathsOf(options.deny_read, `${at}.deny_read`),
    allowWrite:
      options.allow_write === undefined
        ? parent.allowWrite
        : pathsOf(options.allow_write, `${at}.allow_write`),
    env: { ...parent.env, ...envOf(options.env ?? {}, `${at}.env`) },
    network: network.mode,
    networkRules: network.rules,
    toolchains,
    secrets: added(parent.secrets, options.secrets, `${at}.secrets`),
    caches: added(parent.caches, options.caches, `${at}.caches`),
  };
}

/** What comes on top of the parent's. */
function added(parent: readonly string[], value: unknown, at: string): string[] {
  return [...new Set([...parent, ...list(value ?? [], at)])];
}

const ruleLists = ["allow", "deny", "presets"] as const;

/** A mode, or a table with a mode and rules, which come on top of the parent's. */
function networkOf(
  value: unknown,
  parent: SandboxProfile,
  at: string,
): { mode: NetworkMode; rules: NetworkRules } {
  const table = typeof value === "object" && value !== null ? record(value, at) : { mode: value };
  for (const key of Object.keys(table)) {
    if (key !== "mode" && !(ruleLists as readonly string[]).includes(key))
      throw invalid(`${at}.${key}`, `is not known; there are mode, ${ruleLists.join(", ")}`);
  }
  const mode = table.mode ?? parent.network;
  if (!isNetworkMode(mode)) throw invalid(at, `can be ${networkModes.join(", ")}`);
  const rules = { ...parent.networkRules };
  for (const key of ruleLists) {
    const added = list(table[key] ?? [], `${at}.${key}`);
    if (key !== "presets") for (const rule of added) checkRule(rule, `${at}.${key}`);
    rules[key] = [...new Set([...rules[key], ...added])];
  }
  return { mode, rules };
}

function checkRule(rule: string, at: string): void {
  try {
    parseRule(rule);
  } catch (error) {
    throw invalid(at, `is wrong: ${(error as Error).message}`);
  }
}

function limitsOf(value: unknown, parent: LimitValues, at: string): LimitValues {
  const limits = { ...parent };
  for (const [key, limit] of Object.entries(record(value ?? {}, at))) {
    const name = limitKeys[key];
    if (!name) throw invalid(`${at}.${key}`, `is not known; there are ${Object.keys(limitKeys).join(", ")}`);
    if (!Number.isSafeInteger(limit) || (limit as number) < 0)
      throw invalid(`${at}.${key}`, "must be a whole number from 0");
    limits[name] = limit as number;
  }
  return limits;
}

function groupsOf(value: unknown, at: string): SyscallGroup[] {
  return list(value, at).map((group) => {
    if (!isSyscallGroup(group)) throw invalid(at, `knows ${syscallGroups.join(" and ")}, not ${group}`);
    return group;
  });
}

function pathsOf(value: unknown, at: string): string[] {
  return list(value, at).map((path) => {
    checkPath(path);
    if (!path.startsWith("/") && path !== "~" && !path.startsWith("~/")) {
      throw invalid(at, "must hold absolute paths, or paths that begin with `~/`");
    }
    return path;
  });
}

function envOf(value: unknown, at: string): Record<string, string> {
  const env = record(value, at);
  for (const [name, content] of Object.entries(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw invalid(`${at}.${name}`, "is not a variable's name");
    text(content, `${at}.${name}`);
  }
  return env as Record<string, string>;
}

function record(value: unknown, at: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid(at, "must be a table");
  return value as Record<string, unknown>;
}

function list(value: unknown, at: string): string[] {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) {
    throw invalid(at, "must be a list of texts");
  }
  return value;
}

function text(value: unknown, at: string): string {
  if (typeof value !== "string") throw invalid(at, "must be text");
  return value;
}

function invalid(at: string, why: string): CaissonError {
  return new CaissonError("CONFIG_INVALID", `${at} ${why}`, { metadata: { key: at } });
}
