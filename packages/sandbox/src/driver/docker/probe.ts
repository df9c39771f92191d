import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HostEntry, readHostRoot } from "../bubblewrap/host-root.ts";
import { UidPool } from "../bubblewrap/uids.ts";
import type { Tried } from "../cached-probe.ts";
import { Engine } from "./api.ts";
import { ensureImage } from "./image.ts";
import { type LaunchContext, startContainer } from "./launch.ts";
import { explainEngine } from "./obstacles.ts";

/** What a usable host has. */
export interface Ground {
  engine: Engine;
  image: string;
  hostRoot: HostEntry[];
  hasAppArmor: boolean;
  /** The daemon is the host's root: each sandbox gets a uid of its own. */
  givesUids: boolean;
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
    const { body } = await engine.call({ method: "GET", path: "/info" });
    const options = (body as { SecurityOptions?: unknown }).SecurityOptions;
    const hasAppArmor =
      Array.isArray(options) && options.some((option) => String(option).includes("apparmor"));
    const hostRoot = await readHostRoot();
    const image = await ensureImage(engine, hostRoot);
    const ground = { engine, image, hostRoot, hasAppArmor, givesUids: process.getuid?.() === 0 };
    await trial({ ...context, ground });
    return { probe: { usable: true }, ground };
  } catch (error) {
    return { probe: await explainEngine(error, engine?.socket) };
  }
}

async function trial(context: LaunchContext): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "caisson-docker-"));
  try {
    const uid = context.ground.givesUids ? await new UidPool().take() : undefined;
    const spec = { sandboxId: `trial-${process.pid}-${Date.now()}`, image: "host", dir, cgroups: [] };
    const launched = await startContainer(context, spec, uid);
    await launched.kill();
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
