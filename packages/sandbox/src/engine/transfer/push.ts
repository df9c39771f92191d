import { join } from "node:path";
import { CaissonError } from "@caisson/contract";
import { type CopiedLayer, packLayer } from "../../changes/index.ts";
import type { Guest } from "../../link/guest.ts";
import type { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";
import { layerName } from "../layer.ts";
import { readManifest, storeManifest } from "./manifest.ts";

const patienceMs = 600_000;

/** Where the daemon's copy of a project is that was sent into a sandbox. */
export function copiedLayer(context: EngineContext, box: Pick<Box, "record">): CopiedLayer {
  return {
    guest: context.parts.guest,
    projectDir: box.record.workspace.dir,
    dir: join(context.dirOf(box.record.place), layerName),
  };
}

/** Sends the copy in the layer into a sandbox, whole, and notes what it is inside. */
export async function pushProject(context: EngineContext, box: Box, guest: Guest): Promise<void> {
  const layer = copiedLayer(context, box);
  const { dir } = box.record.workspace;
  const signal = AbortSignal.timeout(patienceMs);
  try {
    const withheld = (box.record.workspace.withheld ?? []).map((name) => Buffer.from(name));
    const limits = { maxBytes: 0n, maxFiles: 0n, anyLinks: true };
    await guest.files.unpack(dir, limits, packLayer(layer, withheld), signal);
    await storeManifest(layer.dir, await readManifest(guest.files, dir, signal));
  } catch (error) {
    const { code, message } = CaissonError.from(error);
    if (code !== "STORAGE_FULL" && code !== "TOO_LARGE") throw error;
    const words = `the project does not fit into the sandbox, which keeps it in memory: ${message}`;
    throw new CaissonError("WORKSPACE_REFUSED", `workspace.size: ${words}`, {
      metadata: { rule: "workspace.size" },
    });
  }
}
