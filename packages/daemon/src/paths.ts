import { homedir } from "node:os";
import { dirname, join } from "node:path";

type Env = Record<string, string | undefined>;

/** Where the daemon keeps everything it owns. */
export function dataDirectory(env: Env = process.env, uid = process.getuid?.() ?? 0): string {
  if (env.CAISSON_HOME) return env.CAISSON_HOME;
  if (uid === 0) return "/var/lib/caisson";
  return join(env.XDG_DATA_HOME || join(env.HOME || homedir(), ".local/share"), "caisson");
}

/** The user's own configuration file. */
export function userConfigFile(env: Env = process.env): string {
  return (
    env.CAISSON_CONFIG ||
    join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config"), "caisson/config.yaml")
  );
}

/** Where answers for always are kept: beside the user's own file, never in a project. */
export function approvalsFile(env: Env = process.env): string {
  return join(dirname(userConfigFile(env)), "approvals.yaml");
}

/** The administrator's file; nothing below can weaken it. */
export const machinePolicyFile = "/etc/caisson/policy.yaml";

/** A project's own file, at its top. */
export const projectFileName = "caisson.yaml";
