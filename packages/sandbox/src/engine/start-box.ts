import { CaissonError, SandboxState, WorkspaceMode } from "@caisson/contract";
import type { Sealed } from "@caisson/contract/link";
import type { StateChange } from "@caisson/store";
import type { Launched } from "../driver/driver.ts";
import { type LimitValues, outerLimits, sameBounds } from "../limits/index.ts";
import { preparedLimits } from "../profiles/index.ts";
import type { Box } from "./box.ts";
import { cacheMounts } from "./caches.ts";
import { cleanUp } from "./clean-up.ts";
import type { EngineContext } from "./context.ts";
import { enforcementOf } from "./enforcement.ts";
import { imageMounts } from "./image.ts";
import { endBox } from "./lifecycle.ts";
import { Outlet } from "./network/index.ts";
import { startingData } from "./new-record.ts";
import type { Taken } from "./parts.ts";
import { sealOf } from "./seal.ts";
import { bringTrust } from "./secrets.ts";
import { restoreFiles, restoreLayer } from "./snapshots/restore.ts";
import type { SandboxPlan } from "./spec.ts";
import { toolchainMounts } from "./toolchains.ts";
import { pushProject } from "./transfer/push.ts";
import { watchBox } from "./watch.ts";
import { fillLayer, refuseSockets, workspaceMounts } from "./workspace.ts";

/** How long after a consequence its cause may be told. */
const togetherMs = 200;

export interface StartRequest {
  /** Stored in the transaction that lets the sandbox be acknowledged. */
  remember(sandboxId: string): StateChange[];
  /** Called when the seal is on its way: what is sent now is handled right after it. */
  sealing?(box: Box): void;
}

/** Specialises a sandbox that was taken: hands in the project, closes the wall, records that it is ready. */
export async function startBox(
  context: EngineContext,
  box: Box,
  plan: SandboxPlan,
  taken: Taken,
  request: StartRequest,
  actor: string,
): Promise<void> {
  const { launched, guest } = taken;
  box.launched = launched;
  box.guest = guest;
  box.record.launch = launched.record;
  if (box.ending) {
    await endLate(context, box);
    throw box.notReady();
  }
  box.record.state = SandboxState.STARTING;
  register(context, box);
  try {
    if (context.cgroups.cgroups) {
      box.cgroup = context.cgroups.cgroups.find(taken.id);
      // Those of the pool have the default profile's bounds already.
      if (!sameBounds(plan.limits, preparedLimits))
        box.cgroup.configure(outerLimits(plan.driver, outsideLimits(plan.limits, launched)));
    }
    await refuseSockets(plan.workspace, context.parts.guest);
    // Sent ahead of the seal, and answered in order.
    const limited = launched.limitMemory?.(plan.limits.memoryBytes);
    limited?.catch(() => {});
    if (plan.workspace.mode === WorkspaceMode.COPY)
      await fillLayer(plan.workspace, taken.dir, context.parts.guest);
    if (plan.snapshot) await restoreLayer(context, plan.snapshot, taken.dir);
    const mapOwner = launched.record.uid !== process.getuid?.();
    const project = workspaceMounts(plan.workspace, taken.dir, mapOwner);
    const root = imageMounts(plan.image, mapOwner);
    const takesMounts = plan.driver.capabilities.includes("mounts");
    const tools = toolchainMounts(takesMounts ? plan.toolchains : undefined, plan.workspace, mapOwner);
    const caches = await cacheMounts(context, plan.caches, plan.workspace, mapOwner);
    const sources = [root, project, tools, caches].flatMap((part) => part.sources);
    const mounts = [root, project, tools, caches].flatMap((part) => part.mounts);
    // What takes longest is asked for first. The janitor knows the sandbox since its launch, whatever enters it.
    const attached = sources.length > 0 ? launched.attach(sources) : Promise.resolve([]);
    if (plan.secrets) {
      await plan.secrets.keep(taken.dir);
      box.interceptor = plan.secrets.interceptor;
    }
    box.outlet = new Outlet(context, box);
    box.outlet.attach(guest);
    const sealed = guest.seal(sealOf(box, plan, mounts));
    // What is sent in has to be there before the first command is.
    const needsFiles =
      plan.snapshot !== undefined || plan.workspace.transferred || plan.secrets !== undefined;
    if (!needsFiles) request.sealing?.(box);
    // Synced together with its being ready: until then a sync would only hold up the file system that the project's
    // writable layer is being made on.
    const starting = context.commit(
      [{ type: "sandbox.starting", actor, sandboxId: box.id, data: startingData(box.record) }],
      [box.put()],
      { soon: true },
    );
    starting.catch(() => {});
    await bothDone(attached, sealedOrEnded(sealed, launched.ended));
    await limited;
    if (plan.workspace.transferred) await pushProject(context, box, guest);
    if (plan.secrets) await bringTrust(plan.secrets, guest);
    if (plan.snapshot) await restoreFiles(context, plan.snapshot, guest);
    if (needsFiles) request.sealing?.(box);
    await becomeReady(context, box, plan, await sealed, { ...request, actor });
    // Whoever starts a command with the sandbox waits for the command's own record.
    if (!request.sealing) await starting;
  } catch (error) {
    context.toolchains.forget();
    await endBox(context, box, "start_failed", messageOf(error), actor);
    throw startError(error);
  }
}

/** What a kernel of its own bounds inside, its process outside must not be killed for. */
function outsideLimits(limits: LimitValues, launched: Launched): LimitValues {
  if (!launched.limitMemory) return limits;
  return { ...limits, memoryBytes: preparedLimits.memoryBytes, pids: preparedLimits.pids };
}

/** A queued one that was ended while something was taken for it: that must go too. */
async function endLate(context: EngineContext, box: Box): Promise<void> {
  await box.ending;
  box.guest?.close();
  await box.launched?.kill().catch(() => {});
  box.cgroup = context.cgroups.cgroups?.find(box.record.place);
  await cleanUp(context, box);
}

async function becomeReady(
  context: EngineContext,
  box: Box,
  plan: SandboxPlan,
  sealed: Sealed,
  request: StartRequest & { actor: string },
): Promise<void> {
  if (box.ending) throw box.notReady();
  const kept = context.reports.keep(enforcementOf(plan, box.launched!.mechanisms(), sealed));
  box.enforcement = kept.report;
  box.record.enforcement = kept.key;
  box.record.state = SandboxState.READY;
  box.record.readyAt = Date.now();
  watchBox(context, box);
  const event = {
    type: "sandbox.ready",
    actor: request.actor,
    sandboxId: box.id,
    data: { enforcement: kept.key },
  };
  const changes = [box.put(), ...kept.changes, ...request.remember(box.id)];
  if (request.sealing) {
    // Whoever starts a command with the sandbox is acknowledged on the command's record; that the sandbox
    // is ready must then survive the daemon's death, or a later one would end it.
    void context.commitSurely([event], changes).then(kept.stored);
    context.store.flush();
  } else {
    await context.commit([event], changes);
    kept.stored();
  }
  box.ready.resolve();
}

export function register(context: EngineContext, box: Box): void {
  context.boxes.set(box.id, box);
  if (box.record.session) context.sessions.set(box.record.session.toLowerCase(), box);
}

export function unregister(context: EngineContext, box: Box): void {
  context.boxes.delete(box.id);
  if (box.record.session) context.sessions.delete(box.record.session.toLowerCase());
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
async function bothDone(attached: Promise<unknown>, sealed: Promise<unknown>): Promise<void> {
  for (const promise of [attached, sealed]) promise.catch(() => {});
  try {
    await Promise.all([attached, sealed]);
  } catch (error) {
    // A guest that gets no mounts fails; why there are none is the better answer.
    const follows = error instanceof CaissonError && ["SANDBOX_FAILED", "GUEST_LOST"].includes(error.code);
    if (follows) await Promise.race([attached, sleep(togetherMs)]);
    throw error;
  }
}

export function startError(error: unknown): CaissonError {
  if (error instanceof CaissonError) return error;
  return new CaissonError("SANDBOX_FAILED", "the sandbox could not be started", { cause: error });
}

export function messageOf(error: unknown): string {
  return error instanceof CaissonError ? error.message : "the sandbox could not be started";
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
