// Private caches of package managers: one directory per project and kind, writable inside, never shared between projects.
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

/** Where each kind is found inside. */
const places = {
  npm: ".npm",
  cargo: ".cargo/registry",
  pip: ".cache/pip",
  go: "go/pkg/mod",
  maven: ".m2/repository",
} as const;

export type CacheKind = keyof typeof places;
const kinds = Object.keys(places) as CacheKind[];

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
  return names.includes("all") ? kinds : kinds.filter((kind) => names.includes(kind));
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
  const dir = projectCaches(context, workspace.dir);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeFile(join(dir, "project"), workspace.dir, { mode: 0o600 });
  const now = new Date();
  await utimes(dir, now, now);
  for (const kind of chosen) {
    const path = join(dir, kind);
    await mkdir(path, { recursive: true, mode: 0o755 });
    const { dev, ino } = statSync(path, { bigint: true });
    sources.push({ path, readOnly: false, mapOwner, refuseNested: false });
    const place = { path: `${inside.home}/${places[kind]}`, device: dev, inode: ino, isFile: false };
    mounts.push({ ...place, kind: Mount_Kind.BIND, readOnly: false });
  }
  return { sources, mounts };
}

/** The directories of those that a sandbox has. */
export function cachePaths(context: EngineContext, projectDir: string, chosen: readonly string[]): string[] {
  return chosen.map((kind) => join(projectCaches(context, projectDir), kind));
}

/** Where a project's caches are: by its path, which nobody can choose for another project. */
function projectCaches(context: EngineContext, projectDir: string): string {
  return join(context.home, "caches", hash("sha256", projectDir).slice(0, 32));
}

/** Bytes of all caches, how many projects have some, and what of it no living sandbox uses. */
export async function cacheUsage(
  context: EngineContext,
): Promise<{ bytes: number; count: number; freeable: number }> {
  const used = usedCaches(context);
  let [bytes, count, freeable] = [0, 0, 0];
  for (const dir of await cacheDirs(context)) {
    const size = await context.parts.trees.size(dir).catch(() => 0);
    bytes += size;
    count++;
    if (!used.has(dir)) freeable += size;
  }
  return { bytes, count, freeable };
}

/** Removes the caches that no living sandbox uses. */
export async function pruneCaches(context: EngineContext): Promise<number> {
  const used = usedCaches(context);
  let bytes = 0;
  for (const dir of await cacheDirs(context))
    if (!used.has(dir)) bytes += await context.parts.trees.remove(dir);
  return bytes;
}

function usedCaches(context: EngineContext): Set<string> {
  const living = [...context.boxes.values()].filter((box) => box.record.caches?.length);
  return new Set(living.map((box) => projectCaches(context, box.record.workspace.dir)));
}

async function cacheDirs(context: EngineContext): Promise<string[]> {
  const root = join(context.home, "caches");
  return (await readdir(root).catch(() => [])).map((name) => join(root, name));
}
