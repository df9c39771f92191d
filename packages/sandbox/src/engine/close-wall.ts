import { CaissonError, WorkspaceMode } from "@caisson/contract";
import type { Sealed } from "@caisson/contract/link";
import { bound, groupOf } from "./bounds.ts";
import { cacheMounts } from "./caches.ts";
import type { EngineContext } from "./context.ts";
import { enforcementOf, type HashedReport, hashed } from "./enforcement.ts";
import { imageMounts } from "./image.ts";
import type { Taken } from "./parts.ts";
import { sealOf } from "./seal.ts";
import { restoreLayer } from "./snapshots/restore.ts";
import type { SandboxPlan } from "./spec.ts";
import { toolchainMounts } from "./toolchains.ts";
import { fillLayer, refuseSockets, workspaceMounts } from "./workspace.ts";

/** How long after a consequence its cause may be told. */
const togetherMs = 200;

/** The seal is on its way to the guest: what is sent now is handled right after it. */
export interface Closing {
  /** What really holds; rejects when there is no wall. */
  readonly enforced: Promise<HashedReport>;
}

/** Bounds a sandbox that was taken, hands in what it is to see, and has its guest close the wall. */
export async function closeWall(context: EngineContext, plan: SandboxPlan, taken: Taken): Promise<Closing> {
  const { launched, guest, dir } = taken;
  await bound(groupOf(context, taken), plan, launched);
  await refuseSockets(plan.workspace, context.parts.guest);
  // Sent ahead of the seal, and answered in order.
  const limited = launched.limitMemory?.(plan.limits.memoryBytes);
  limited?.catch(() => {});
  if (plan.workspace.mode === WorkspaceMode.COPY) await fillLayer(plan.workspace, dir, context.parts.guest);
  if (plan.snapshot) await restoreLayer(context, plan.snapshot, dir);
  const mapOwner = launched.record.uid !== process.getuid?.();
  const takesMounts = plan.driver.capabilities.includes("mounts");
  const parts = [
    imageMounts(takesMounts ? plan.image : undefined, mapOwner),
    workspaceMounts(plan.workspace, dir, mapOwner),
    toolchainMounts(takesMounts ? plan.toolchains : undefined, plan.workspace, mapOwner),
    await cacheMounts(context, plan.caches, plan.workspace, mapOwner),
  ];
  const sources = parts.flatMap((part) => part.sources);
  const mounts = parts.flatMap((part) => part.mounts);
  // What takes longest is asked for first. The janitor knows the sandbox since its launch, whatever enters it.
  const attached = sources.length > 0 ? launched.attach(sources) : Promise.resolve([]);
  const answered = sealedOrEnded(guest.seal(sealOf(taken, plan, mounts)), launched.ended);
  const enforced = bothDone(attached, answered).then(async (sealed) => {
    await limited;
    return hashed(enforcementOf(plan, launched.mechanisms(), sealed));
  });
  enforced.catch(() => {});
  return { enforced };
}

/** A guest that fails to seal exits with the code of the step; waiting for its answer would be in vain. */
async function sealedOrEnded(sealed: Promise<Sealed>, ended: Promise<string>): Promise<Sealed> {
  const died = ended.then((words): never => {
    throw new CaissonError("SANDBOX_FAILED", `the sandbox ended while it was being closed: ${words}`);
  });
  died.catch(() => {});
  try {
    return await Promise.race([sealed, died]);
  } catch (error) {
    // The outer process's words are better than a lost link's.
    if (error instanceof CaissonError && error.code === "GUEST_LOST")
      await Promise.race([died, sleep(togetherMs)]);
    throw error;
  }
}

/** Resolves when both have; throws the error that is the cause rather than one that follows from it. */
async function bothDone(attached: Promise<unknown>, sealed: Promise<Sealed>): Promise<Sealed> {
  for (const promise of [attached, sealed]) promise.catch(() => {});
  try {
    await attached;
    return await sealed;
  } catch (error) {
    // A guest that gets no mounts fails; why there are none is the better answer.
    const follows = error instanceof CaissonError && ["SANDBOX_FAILED", "GUEST_LOST"].includes(error.code);
    if (follows) await Promise.race([attached, sleep(togetherMs)]);
    throw error;
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
