import { readlinkSync } from "node:fs";
import type { SandboxProfile } from "../profiles/index.ts";

/** The world that a command finds: docs/inside.md describes it. */
export const inside = {
  user: "agent",
  uid: 1000,
  gid: 1000,
  home: "/home/agent",
  helpers: "/run/caisson/bin",
  path: "/home/agent/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/caisson/bin",
} as const;

/** A profile's path, in which `~` stands for the home directory. */
export function insidePath(path: string): string {
  return path.startsWith("~") ? inside.home + path.slice(1) : path;
}

/** Variables of every command in a sandbox; later ones win. Nothing of the daemon's own environment is here. */
export function sandboxEnv(
  sandboxId: string,
  profile: SandboxProfile,
  spec: Readonly<Record<string, string>>,
  toolchains: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    HOME: inside.home,
    USER: inside.user,
    LOGNAME: inside.user,
    SHELL: "/bin/sh",
    PATH: inside.path,
    LANG: "C.UTF-8",
    TERM: "dumb",
    TZ: hostZone(),
    CAISSON_SANDBOX: sandboxId,
    ...toolchains,
    ...profile.env,
    ...spec,
  };
}

export function envList(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

let zone: string | undefined;

/** The host's time zone by name, such as `Europe/Berlin`. */
function hostZone(): string {
  zone ??= zoneOfLink() ?? "UTC";
  return zone;
}

function zoneOfLink(): string | undefined {
  try {
    return /zoneinfo\/(?:posix\/|right\/)?([A-Za-z0-9_+/-]+)$/.exec(readlinkSync("/etc/localtime"))?.[1];
  } catch {
    return undefined;
  }
}
