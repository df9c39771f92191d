import { type BigIntStats, chmodSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import {
  CaissonError,
  checkPath,
  type Mechanism,
  MechanismSchema,
  MechanismState,
  type Workspace,
  WorkspaceMode,
} from "@caisson/contract";
import { Mount_Kind } from "@caisson/contract/link";
import { copyProject, findSockets } from "../changes/index.ts";
import type { Driver, MountSource } from "../driver/driver.ts";
import type { SealInit } from "../link/guest.ts";
import { layerName } from "./layer.ts";
import { isLocalDirectory, learnAbout } from "./local-directories.ts";

export interface ResolvedWorkspace {
  dir: string;
  mode: WorkspaceMode;
  /** The caller named the mode; otherwise the driver may choose another one. */
  chosen: boolean;
  /** It travels over the link instead of being mounted. */
  transferred: boolean;
  /** What the directory was when it was looked at; the guest compares. */
  stats: BigIntStats | undefined;
}

/** Something to hand in, and what the guest is to do with it. */
export interface MountPlan {
  sources: MountSource[];
  mounts: NonNullable<SealInit["mounts"]>;
}

/** Directories of the system: as a workspace they would show or shadow the host itself. */
const systemDirectories = [
  "/bin",
  "/boot",
  "/etc",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/run",
  "/sbin",
  "/usr",
  "/var",
];
/** Neither they nor anything below them are directories of files. */
const kernelDirectories = ["/proc", "/sys", "/dev"];

/** Checks a workspace; refuses with the rule's name. `home` is the real path of the daemon's data directory. */
export async function resolveWorkspace(
  workspace: Workspace | undefined,
  home: string,
): Promise<ResolvedWorkspace> {
  const none = { dir: "", mode: WorkspaceMode.NONE, chosen: true, transferred: false, stats: undefined };
  if (!workspace) return none;
  if (workspace.mode === WorkspaceMode.NONE || (!workspace.mode && workspace.dir === "")) {
    if (workspace.dir !== "")
      throw new CaissonError("INVALID_INPUT", "workspace.dir is given, but its mode is none");
    return none;
  }
  const { dir, stats } = await realDirectory(workspace.dir);
  checkPlace(dir, home, homedir());
  const chosen = workspace.mode !== WorkspaceMode.UNSPECIFIED;
  return { dir, mode: workspace.mode || WorkspaceMode.OVERLAY, chosen, transferred: false, stats };
}

/** What a driver can do with a workspace: one that takes no mounts gets a copy over the link, and nothing else. */
export function fitWorkspace(workspace: ResolvedWorkspace, driver: Driver): ResolvedWorkspace {
  if (workspace.mode === WorkspaceMode.NONE || driver.capabilities.includes("mounts")) return workspace;
  if (workspace.chosen && workspace.mode !== WorkspaceMode.COPY) {
    const mode = workspace.mode === WorkspaceMode.OVERLAY ? "overlay" : "bind";
    throw refused("mode", `the driver ${driver.name} cannot attach a project as ${mode}; use copy`);
  }
  return { ...workspace, mode: WorkspaceMode.COPY, transferred: true };
}

export async function realDirectory(path: string): Promise<{ dir: string; stats: BigIntStats }> {
  checkPath(path);
  if (!path.startsWith("/")) throw refused("absolute", "the directory must be an absolute path");
  try {
    const { dir, stats } = isLocalDirectory(path) ? lookNow(path) : await look(path);
    if (stats.isDirectory()) return { dir, stats };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT") throw refused("exists", `there is no directory ${path}`);
    if (code === "EACCES") throw refused("readable", `the daemon may not read ${path}`);
    throw error;
  }
  throw refused("directory", "it is not a directory");
}

// Should the two calls see different directories, the guest finds that another one was handed in.
async function look(path: string): Promise<{ dir: string; stats: BigIntStats }> {
  const [dir, stats] = await Promise.all([realpath(path), stat(path, { bigint: true })]);
  void learnAbout(path);
  return { dir, stats };
}

function lookNow(path: string): { dir: string; stats: BigIntStats } {
  return { dir: realpathSync.native(path), stats: statSync(path, { bigint: true }) };
}

export function checkPlace(dir: string, home: string, userHome: string): void {
  if (dir === "/") throw refused("root", "the root of the host cannot be a workspace");
  if (kernelDirectories.some((kernel) => isAtOrBelow(dir, kernel))) {
    throw refused("kernel", "/proc, /sys and /dev hold no projects");
  }
  if (isAtOrBelow(userHome, dir))
    throw refused("home", "a home directory, or one above it, holds more than a project");
  if (isAtOrBelow(home, dir) || isAtOrBelow(dir, home)) {
    throw refused("data", "the daemon's own data would be inside, or around it");
  }
  if (systemDirectories.includes(dir)) throw refused("system", "it is a directory of the system");
}

/** A writable bind lets commands connect to the host's sockets in it; the other modes do not. */
export async function refuseSockets(workspace: ResolvedWorkspace, guest: string): Promise<void> {
  if (workspace.mode !== WorkspaceMode.BIND_WRITE) return;
  const found = await findSockets(guest, workspace.dir);
  if (found.length > 0)
    throw refused("sockets", `a writable bind would reach the host's sockets in it: ${found.join(", ")}`);
}

/** For the report: what stands between commands and the project. */
export function workspaceMechanism({ mode, dir }: ResolvedWorkspace): Mechanism[] {
  if (dir === "") return [];
  const weak = mode === WorkspaceMode.BIND_WRITE;
  const detail = weak
    ? "commands write the project itself: nothing is withheld, nothing can be undone, and sockets made in it can be reached"
    : mode === WorkspaceMode.BIND
      ? "the project itself, read-only"
      : "writes stay aside until they are applied";
  return [
    create(MechanismSchema, {
      name: "workspace",
      state: weak ? MechanismState.NOT_ENFORCED : MechanismState.ENFORCED,
      by: weak || mode === WorkspaceMode.BIND ? "bind" : mode === WorkspaceMode.COPY ? "copy" : "overlay",
      detail,
    }),
  ];
}

/** Does what a sandbox writes to its project lie on the host's own file system, in a layer? */
export function hasLayer(
  workspace: Pick<ResolvedWorkspace, "dir" | "mode"> & { transferred?: boolean },
): boolean {
  const { dir, mode, transferred } = workspace;
  return dir !== "" && !transferred && (mode === WorkspaceMode.OVERLAY || mode === WorkspaceMode.COPY);
}

/** For the report: by what means the layer's size is bounded, if it is. */
export function layerMechanism(workspace: ResolvedWorkspace, diskBytes: number): Mechanism[] {
  if (!hasLayer(workspace) || diskBytes === 0) return [];
  const detail =
    "what is written to the project is measured as the file system fills; beyond limits.disk the commands are ended, and then the sandbox";
  return [
    create(MechanismSchema, { name: "limit.layer", state: MechanismState.ENFORCED, by: "watcher", detail }),
  ];
}

/** Makes the directories of an overlay's writable layer, before anybody waits for them. */
export function makeLayer(dir: string): void {
  mkdirSync(join(dir, layerName, "upper"), { recursive: true });
  mkdirSync(join(dir, layerName, "work"));
}

/** Fills the layer of a sandbox that is given a copy. */
export async function fillLayer(workspace: ResolvedWorkspace, dir: string, guest: string): Promise<void> {
  const layer = join(dir, layerName);
  await copyProject({ guest, projectDir: workspace.dir, dir: layer });
  chmodSync(join(layer, "upper"), Number(workspace.stats!.mode & 0o777n) | 0o700);
}

/**
 * What is handed in for a workspace; its layer is in `dir`. `mapOwner`: the sandbox has another uid than
 * the daemon.
 */
export function workspaceMounts(workspace: ResolvedWorkspace, dir: string, mapOwner: boolean): MountPlan {
  const { stats } = workspace;
  if (!stats) return { sources: [], mounts: [] };
  if (workspace.transferred) {
    return { sources: [], mounts: [{ path: workspace.dir, kind: Mount_Kind.PRIVATE }] };
  }
  const place = { path: workspace.dir, device: stats.dev, inode: stats.ino, isFile: false };
  const project: MountSource = { path: workspace.dir, readOnly: true, mapOwner, refuseNested: true };
  if (workspace.mode === WorkspaceMode.BIND || workspace.mode === WorkspaceMode.BIND_WRITE) {
    const readOnly = workspace.mode === WorkspaceMode.BIND;
    return {
      sources: [{ ...project, readOnly }],
      mounts: [{ ...place, kind: Mount_Kind.BIND, readOnly }],
    };
  }
  const layer = join(dir, layerName);
  const upper = join(layer, "upper");
  if (workspace.mode === WorkspaceMode.COPY) {
    const copy = statSync(upper, { bigint: true });
    return {
      sources: [{ path: upper, readOnly: false, mapOwner, refuseNested: false }],
      mounts: [{ ...place, device: copy.dev, inode: copy.ino, kind: Mount_Kind.BIND, readOnly: false }],
    };
  }
  // Inside, the project's own directory looks like the upper one.
  chmodSync(upper, Number(stats.mode & 0o777n) | 0o700);
  const made = statSync(layer, { bigint: true });
  return {
    sources: [project, { path: layer, readOnly: false, mapOwner, refuseNested: false }],
    mounts: [
      { ...place, kind: Mount_Kind.LOWER, readOnly: true },
      { kind: Mount_Kind.UPPER, path: workspace.dir, device: made.dev, inode: made.ino },
    ],
  };
}

function isAtOrBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(root === "/" ? "/" : `${root}/`);
}

function refused(rule: string, why: string): CaissonError {
  return new CaissonError("WORKSPACE_REFUSED", `workspace.${rule}: ${why}`, {
    metadata: { rule: `workspace.${rule}` },
  });
}
