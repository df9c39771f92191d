import { rm } from "node:fs/promises";
import { CaissonError } from "@caisson/contract/errors";
import { type LimitValues, noLimits } from "../../limits/index.ts";
import { type HostEntry, readHostRoot } from "../bubblewrap/host-root.ts";
import { UidPool } from "../bubblewrap/uids.ts";
import type { Tried } from "../cached-probe.ts";
import { makeTrialDirectory } from "../trial-directory.ts";
import { Engine } from "./api.ts";
import { ensureImage } from "./image.ts";
import { type LaunchContext, startContainer } from "./launch.ts";
import { explainEngine } from "./obstacles.ts";

/** What a usable host has. */
export interface Ground {
  engine: Engine;
  isPodman: boolean;
  /** It runs as the daemon's own user. */
  isRootless: boolean;
  /** With the links that the host's root has, and without. */
  image: string;
  bareImage: string;
  hostRoot: HostEntry[];
  hasAppArmor: boolean;
  /** The daemon is the host's root: each sandbox gets a uid of its own. */
  givesUids: boolean;
  /** The engine bounds what containers use. */
  bounds: boolean;
}

export interface ProbeContext extends Omit<LaunchContext, "ground"> {
  /** Where the engine is asked; throws with a clear word. */
  engineSocket(): string;
}

/** Is an engine usable here? By really starting a sandbox, since every part of it can be forbidden. */
export async function probeGround(context: ProbeContext): Promise<Tried<Ground>> {
  let engine: Engine | undefined;
  try {
    engine = new Engine(context.engineSocket());
    const info = ((await engine.call({ method: "GET", path: "/info" })).body ?? {}) as EngineInfo;
    const options = Array.isArray(info.SecurityOptions) ? info.SecurityOptions.map(String) : [];
    const hasAppArmor = options.some((option) => option.includes("apparmor"));
    const isRootless = info.Rootless === true || options.includes("name=rootless");
    const hostRoot = await readHostRoot();
    const image = await ensureImage(engine, hostRoot);
    const bareImage = await ensureImage(engine, []);
    const givesUids = process.getuid?.() === 0 && !isRootless;
    const isPodman = await engine.isPodman();
    const ground: Ground = {
      engine,
      isPodman,
      isRootless,
      image,
      bareImage,
      hostRoot,
      hasAppArmor,
      givesUids,
      bounds: false,
    };
    ground.bounds = await canBound({ ...context, ground }, info);
    if (!ground.bounds) await trial({ ...context, ground }, undefined);
    return { probe: { usable: true }, ground };
  } catch (error) {
    return { probe: await explainEngine(error, engine?.socket) };
  }
}

interface EngineInfo {
  SecurityOptions?: unknown;
  Rootless?: unknown;
  MemoryLimit?: unknown;
  PidsLimit?: unknown;
  CpuCfsQuota?: unknown;
}

/** Bounds to try an engine with. */
const trialLimits: LimitValues = { ...noLimits, memoryBytes: 512 * 1024 * 1024, pids: 512 };
const changedLimits: LimitValues = { ...noLimits, memoryBytes: 768 * 1024 * 1024, pids: 256, cpuMillis: 500 };

/** Does it bound containers, from their start and later? Some say so and do not, others cannot without root. */
async function canBound(context: LaunchContext, info: EngineInfo): Promise<boolean> {
  if (!info.MemoryLimit || !info.PidsLimit || !info.CpuCfsQuota) return false;
  try {
    return await trial(context, trialLimits);
  } catch (error) {
    if (CaissonError.from(error).code === "UNAVAILABLE") throw error;
    return false;
  }
}

/** Starts a sandbox; says whether the bounds hold. */
async function trial(context: LaunchContext, limits: LimitValues | undefined): Promise<boolean> {
  const dir = await makeTrialDirectory(context.directory, "docker");
  try {
    const uid = context.ground.givesUids ? await new UidPool().take() : undefined;
    const spec = { sandboxId: `trial-${process.pid}-${Date.now()}`, image: "host", dir, cgroups: [] };
    const launched = await startContainer(context, { ...spec, ...(limits ? { limits } : {}) }, uid);
    try {
      const group = launched.cgroup;
      if (!limits || !group?.holds(limits)) return false;
      await group.configure(changedLimits);
      return true;
    } finally {
      await launched.kill();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
