// What is kept for a project from one sandbox to the next, because somebody asked for it: caches of package managers, and
// agents' own directories. One directory per project and kind, writable inside, never shared between projects.
import { hash } from "node:crypto";
import { statSync } from "node:fs";
import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { CaissonError } from "@caisson/contract";
import { Mount_Kind, type MountSchema } from "@caisson/contract/link";
import type { Driver, MountSource } from "../driver/driver.ts";
import type { EngineContext } from "./context.ts";
import { inside } from "./inside.ts";
import type { MountPlan, ResolvedWorkspace } from "./workspace.ts";

/** Where each kind is found inside. What can be downloaded again: */
const packages = {
  npm: ".npm",
  cargo: ".cargo/registry",
  pip: ".cache/pip",
  go: "go/pkg/mod",
  maven: ".m2/repository",
} as const;

/** What cannot: an agent's settings, conversations and answers to its questions. */
const agents = { claude: ".claude", codex: ".codex", gemini: ".gemini" } as const;

const places = { ...packages, ...agents };

export type CacheKind = keyof typeof places;
const kinds = Object.keys(places) as CacheKind[];

/** Both are directories of the daemon's own; only what can be downloaded again is freed without being named. */
export const keptRoots = ["caches", "agents"] as const;
export type KeptRoot = (typeof keptRoots)[number];

function rootOf(kind: string): KeptRoot {
  return Object.hasOwn(agents, kind) ? "agents" : "caches";
}

/** Which caches a list of names asks for. */
export function cacheKinds(
  names: readonly string[],
  workspace: ResolvedWorkspace,
  driver: Driver,
): CacheKind[] {
  if (names.length === 0) return [];
  if (workspace.dir === "")
    throw new CaissonError("INVALID_INPUT", "spec.caches are kept per project, and there is none");
  if (!driver.capabilities.includes("mounts"))
    throw new CaissonError(
      "NOT_ENFORCEABLE",
      `the driver ${driver.name} cannot keep caches: it takes no mounts`,
    );
  const wrong = names.find((name) => name !== "all" && !(kinds as string[]).includes(name));
  if (wrong !== undefined)
    throw new CaissonError("INVALID_INPUT", `spec.caches knows ${kinds.join(", ")} and all`);
  const isMeant = (kind: CacheKind) =>
    names.includes(kind) || (names.includes("all") && rootOf(kind) === "caches");
  return kinds.filter(isMeant);
}

/** Claude Code keeps a file beside its directory unless it is told where everything belongs. */
export function cacheEnv(chosen: readonly CacheKind[]): Record<string, string> {
  return chosen.includes("claude") ? { CLAUDE_CONFIG_DIR: `${inside.home}/${agents.claude}` } : {};
}

/** Makes what is missing and says what is handed in. */
export async function cacheMounts(
  context: EngineContext,
  chosen: readonly CacheKind[],
  workspace: ResolvedWorkspace,
  mapOwner: boolean,
): Promise<MountPlan> {
  const sources: MountSource[] = [];
  const mounts: MessageInitShape<typeof MountSchema>[] = [];
  if (chosen.length === 0) return { sources, mounts };
  const now = new Date();
  for (const root of new Set(chosen.map(rootOf))) {
    const dir = projectCaches(context, root, workspace.dir);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await writeFile(join(dir, "project"), workspace.dir, { mode: 0o600 });
    await utimes(dir, now, now);
  }
  for (const [index, path] of cachePaths(context, workspace.dir, chosen).entries()) {
    await mkdir(path, { recursive: true, mode: 0o755 });
    const { dev, ino } = statSync(path, { bigint: true });
    sources.push({ path, readOnly: false, mapOwner, refuseNested: false });
    const place = {
      path: `${inside.home}/${places[chosen[index]!]}`,
      device: dev,
      inode: ino,
      isFile: false,
    };
    mounts.push({ ...place, kind: Mount_Kind.BIND, readOnly: false });
  }
  return { sources, mounts };
}

/** The directories of those that a sandbox has. */
export function cachePaths(context: EngineContext, projectDir: string, chosen: readonly string[]): string[] {
  return chosen.map((kind) => join(projectCaches(context, rootOf(kind), projectDir), kind));
}

/** Where a project's caches are: by its path, which nobody can choose for another project. */
function projectCaches(context: EngineContext, root: KeptRoot, projectDir: string): string {
  return join(context.home, root, hash("sha256", projectDir).slice(0, 32));
}

/** Bytes of all caches, or agents' directories, how many projects have some, and what of it no living sandbox uses. */
export async function cacheUsage(
  context: EngineContext,
  root: KeptRoot,
): Promise<{ bytes: number; count: number; freeable: number }> {
  const used = usedCaches(context, root);
  let [bytes, count, freeable] = [0, 0, 0];
  for (const dir of await cacheDirs(context, root)) {
    const size = await context.parts.trees.size(dir).catch(() => 0);
    bytes += size;
    count++;
    if (!used.has(dir)) freeable += size;
  }
  return { bytes, count, freeable };
}

/** Removes those that no living sandbox uses. */
export async function pruneCaches(context: EngineContext, root: KeptRoot): Promise<number> {
  const used = usedCaches(context, root);
  let bytes = 0;
  for (const dir of await cacheDirs(context, root))
    if (!used.has(dir)) bytes += await context.parts.trees.remove(dir);
  return bytes;
}

function usedCaches(context: EngineContext, root: KeptRoot): Set<string> {
  const living = [...context.boxes.values()].filter((box) => box.record.caches?.length);
  return new Set(living.map((box) => projectCaches(context, root, box.record.workspace.dir)));
}

async function cacheDirs(context: EngineContext, root: KeptRoot): Promise<string[]> {
  const dir = join(context.home, root);
  return (await readdir(dir).catch(() => [])).map((name) => join(dir, name));
}
