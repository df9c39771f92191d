// The administrator's bounds. They are not settings: they limit what any setting or request may ask for.
import { stat } from "node:fs/promises";
import { CaissonError } from "@caisson/contract";
import { checkNetworkRule } from "@caisson/sandbox";
import { type ConfigFile, nearest, readConfigFile } from "./files.ts";
import { tiers } from "./settings.ts";

export interface Policy {
  path: string;
  /** No sandbox below this tier. */
  minimum_tier?: (typeof tiers)[number];
  /** The only profiles that may be used. */
  profiles?: string[];
  /** The only syscall groups that may be added. */
  syscalls?: string[];
  /** No limit above these; a request that names none gets them. */
  limits?: {
    memory_bytes?: number;
    cpu_millis?: number;
    pids?: number;
    disk_bytes?: number;
    timeout_ms?: number;
  };
  /** The only directories below which a workspace may lie. */
  workspaces?: string[];
  /** Whether the daemon may listen on TCP. */
  tcp?: boolean;
  /** Whether a sandbox may write a project itself. */
  bind_write?: boolean;
  /** Whether toolchains of the host, which lie in home directories, may be shown. */
  toolchains?: boolean;
  /** The only secrets that a sandbox may be given. */
  secrets?: string[];
  /** The only kinds of request that may be asked for, whether answers may hold for always, and what is refused
   * without asking (`network *.example.com:*`). */
  approvals?: { kinds?: string[]; always?: boolean; deny?: string[] };
  /** The only network modes and destinations that there may be, and what is always denied. */
  network?: { modes?: NetworkModeName[]; only?: string[]; deny?: string[] };
}

const networkModes = ["off", "allow", "ask", "on"] as const;
type NetworkModeName = (typeof networkModes)[number];

/** Every bound there is, and what it does. */
export const bounds: Readonly<Record<Exclude<keyof Policy, "path">, string>> = {
  minimum_tier: `No sandbox below this tier: ${tiers.join(", ")}.`,
  profiles: "The only profiles that may be used.",
  syscalls: "The only syscall groups that may be added: `debug`, `nested`.",
  limits:
    "No limit above these, whatever a profile or a request says: `memory_bytes`, `cpu_millis`, `pids`, `disk_bytes`, `timeout_ms`.",
  workspaces: "The only directories below which a project, or a directory as image, may lie.",
  tcp: "`false`: the daemon listens on its Unix socket alone.",
  bind_write: "`false`: no sandbox writes a project directly.",
  toolchains: "`false`: toolchains of home directories are shown to no sandbox.",
  approvals:
    "`kinds`: all that may be asked for; `always`: whether an answer may hold for ever; `deny`: what is refused without asking, as `network *.example.com:*`.",
  network: "`modes`: the only modes; `only`: the only destinations; `deny`: what is always refused.",
  secrets: "The only secrets that a sandbox may be given.",
};
const keys = Object.keys(bounds);
const limitKeys = ["memory_bytes", "cpu_millis", "pids", "disk_bytes", "timeout_ms"];

/** Reads the machine's policy. A policy that an ordinary user could have written is refused. */
export async function readPolicy(path: string): Promise<Policy | undefined> {
  const file = await readConfigFile(path);
  if (file === undefined) return undefined;
  const { uid, mode } = await stat(path);
  if (uid !== 0 || (mode & 0o022) !== 0) {
    throw new CaissonError("CONFIG_INVALID", `${path} must belong to root and be writable by nobody else`);
  }
  return checkPolicy(file);
}

export function checkPolicy(file: ConfigFile): Policy {
  const { path, tree } = file;
  const wrong = (message: string): never => {
    throw new CaissonError("CONFIG_INVALID", `${path}: ${message}`);
  };
  for (const key of Object.keys(tree)) {
    if (!keys.includes(key)) {
      const near = nearest(key, keys);
      wrong(`there is no bound ${key}${near ? `; did you mean ${near}?` : ""}`);
    }
  }
  const policy: Policy = { path };
  if (tree.minimum_tier !== undefined) {
    const tier = tiers.find((known) => known === tree.minimum_tier);
    policy.minimum_tier = tier ?? wrong(`minimum_tier must be one of ${tiers.join(", ")}`);
  }
  for (const key of ["profiles", "syscalls", "workspaces", "secrets"] as const) {
    const value = tree[key];
    if (value === undefined) continue;
    if (!Array.isArray(value) || !value.every((item) => typeof item === "string"))
      wrong(`${key} must be a list of texts`);
    policy[key] = value as string[];
  }
  if (tree.limits !== undefined) {
    const limits = tree.limits as Record<string, unknown>;
    if (typeof limits !== "object" || limits === null) wrong("limits must be a table");
    for (const [key, value] of Object.entries(limits)) {
      if (!limitKeys.includes(key)) wrong(`there is no limit ${key}; there are ${limitKeys.join(", ")}`);
      if (typeof value !== "number" || !Number.isInteger(value) || value <= 0)
        wrong(`limits.${key} must be a whole number above 0`);
    }
    policy.limits = limits as NonNullable<Policy["limits"]>;
  }
  if (tree.network !== undefined) policy.network = checkNetwork(tree.network, wrong);
  if (tree.approvals !== undefined) policy.approvals = checkApprovals(tree.approvals, wrong);
  for (const key of ["tcp", "bind_write", "toolchains"] as const) {
    const value = tree[key];
    if (value !== undefined)
      policy[key] = typeof value === "boolean" ? value : wrong(`${key} must be true or false`);
  }
  return policy;
}

function checkNetwork(value: unknown, wrong: (message: string) => never): NonNullable<Policy["network"]> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) wrong("network must be a table");
  const { modes, only, deny, ...others } = value as Record<string, unknown>;
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) wrong(`there is no bound network.${unknown}; there are modes, only, deny`);
  const texts = (list: unknown, key: string): string[] =>
    Array.isArray(list) && list.every((item) => typeof item === "string")
      ? list
      : wrong(`network.${key} must be a list of texts`);
  const rules = (list: unknown, key: string): string[] => {
    const checked = texts(list, key);
    for (const rule of checked) {
      try {
        checkNetworkRule(rule);
      } catch (error) {
        wrong(`network.${key}: ${(error as Error).message}`);
      }
    }
    return checked;
  };
  const modeNames = modes === undefined ? undefined : texts(modes, "modes");
  if (modeNames && !modeNames.every((mode) => (networkModes as readonly string[]).includes(mode)))
    wrong(`network.modes knows ${networkModes.join(", ")}`);
  return {
    ...(modeNames === undefined ? {} : { modes: modeNames as NetworkModeName[] }),
    ...(only === undefined ? {} : { only: rules(only, "only") }),
    ...(deny === undefined ? {} : { deny: rules(deny, "deny") }),
  };
}

function checkApprovals(value: unknown, wrong: (message: string) => never): NonNullable<Policy["approvals"]> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) wrong("approvals must be a table");
  const { kinds, always, deny, ...others } = value as Record<string, unknown>;
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) wrong(`there is no bound approvals.${unknown}; there are kinds, always, deny`);
  const texts = (list: unknown, key: string): string[] =>
    Array.isArray(list) && list.every((item) => typeof item === "string")
      ? list
      : wrong(`approvals.${key} must be a list of texts`);
  if (always !== undefined && typeof always !== "boolean") wrong("approvals.always must be true or false");
  return {
    ...(kinds === undefined ? {} : { kinds: texts(kinds, "kinds") }),
    ...(always === undefined ? {} : { always: always as boolean }),
    ...(deny === undefined ? {} : { deny: texts(deny, "deny") }),
  };
}
