// Where the engine is asked: what is configured, what the environment names, the Docker context in use, the usual places.
import { hash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "@caisson/contract/errors";

export interface EngineSearch {
  /** The setting `docker.host`; empty: look for it. */
  host: string;
  env: Readonly<Record<string, string | undefined>>;
}

/** A file of Docker's that is larger than this is not read. */
const maxFileBytes = 1024 * 1024;

/** The engine's Unix socket. It need not answer. */
export function engineSocket({ host, env }: EngineSearch): string {
  if (host !== "") return unixPath(host, "docker.host");
  for (const name of ["DOCKER_HOST", "CONTAINER_HOST"] as const)
    if (env[name]) return unixPath(env[name], name);
  const named = contextHost(env);
  if (named) return unixPath(named.host, `the Docker context ${named.context}`);
  const places = usualPlaces(env);
  return places.find((path) => existsSync(path)) ?? places[0]!;
}

/** The engine shares this machine's files with the daemon, so only one that is on this machine will do. */
function unixPath(host: string, where: string): string {
  const path = host.startsWith("unix://") ? host.slice("unix://".length) : host;
  if (path.startsWith("/")) return path;
  const scheme = /^[a-z+]{1,16}(?=:)/.exec(host)?.[0] ?? "something else";
  throw new CaissonError("NO_DRIVER", `${where} names ${scheme}, not a Unix socket of this machine`);
}

function usualPlaces({ XDG_RUNTIME_DIR, HOME }: EngineSearch["env"]): string[] {
  const own = XDG_RUNTIME_DIR ? [join(XDG_RUNTIME_DIR, "docker.sock")] : [];
  const home = HOME ? [join(HOME, ".docker/run/docker.sock")] : [];
  const podman = XDG_RUNTIME_DIR ? [join(XDG_RUNTIME_DIR, "podman/podman.sock")] : [];
  return ["/var/run/docker.sock", ...own, ...home, ...podman, "/run/podman/podman.sock"];
}

/** What `docker context use` or `DOCKER_CONTEXT` chose. */
function contextHost(env: EngineSearch["env"]): { context: string; host: string } | undefined {
  const dir = env.DOCKER_CONFIG || (env.HOME ? join(env.HOME, ".docker") : undefined);
  if (dir === undefined) return undefined;
  const chosen = env.DOCKER_CONTEXT || readJson(join(dir, "config.json"))?.currentContext;
  if (
    typeof chosen !== "string" ||
    !/^[a-zA-Z0-9][a-zA-Z0-9_.+-]{0,99}$/.test(chosen) ||
    chosen === "default"
  )
    return undefined;
  const meta = readJson(join(dir, "contexts/meta", hash("sha256", chosen), "meta.json"));
  const host = (meta?.Endpoints as { docker?: { Host?: unknown } } | undefined)?.docker?.Host;
  if (typeof host === "string" && host !== "") return { context: chosen, host };
  throw new CaissonError("NO_DRIVER", `there is no Docker context ${chosen}, which is the one to be used`);
}

function readJson(file: string): Record<string, unknown> | undefined {
  try {
    const text = readFileSync(file);
    const value: unknown = text.length > maxFileBytes ? undefined : JSON.parse(text.toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
