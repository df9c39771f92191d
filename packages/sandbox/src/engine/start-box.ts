import { CaissonError, SandboxState } from "@caisson/contract";
import { type StateChange, soonMs } from "@caisson/store";
import { groupOf } from "./bounds.ts";
import type { Box } from "./box.ts";
import { bringFiles, toolFiles } from "./bring-files.ts";
import { cleanUp } from "./clean-up.ts";
import { type Closing, closeWall } from "./close-wall.ts";
import type { EngineContext } from "./context.ts";
import type { HashedReport } from "./enforcement.ts";
import { endBox } from "./lifecycle.ts";
import { Outlet } from "./network/index.ts";
import { startingData } from "./new-record.ts";
import type { Taken } from "./parts.ts";
import { restoreFiles } from "./snapshots/restore.ts";
import type { SandboxPlan } from "./spec.ts";
import { pushProject } from "./transfer/push.ts";
import { watchBox } from "./watch.ts";

/** A sandbox for a plan; `closed` if its wall was closed for the same plan before anybody asked. */
export interface Chosen {
  readonly taken: Taken;
  readonly closed?: Closing;
}

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
  { taken, closed }: Chosen,
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
    box.cgroup = groupOf(context, taken);
    if (plan.secrets) {
      await plan.secrets.keep(taken.dir);
      box.interceptor = plan.secrets.interceptor;
    }
    box.outlet = new Outlet(context, box);
    box.outlet.attach(guest);
    const { enforced } = closed ?? (await closeWall(context, plan, taken));
    // What is sent in has to be there before the first command is.
    const told = toolFiles(plan);
    const needsFiles =
      plan.snapshot !== undefined ||
      plan.workspace.transferred ||
      plan.secrets !== undefined ||
      told.length > 0;
    if (!needsFiles) request.sealing?.(box);
    // Synced together with its being ready: until then a sync would only hold up the file system that the project's
    // writable layer is being made on.
    const starting = context.commit(
      [{ type: "sandbox.starting", actor, sandboxId: box.id, data: startingData(box.record) }],
      [box.put()],
      { withinMs: soonMs },
    );
    starting.catch(() => {});
    const report = await enforced;
    if (plan.workspace.transferred) await pushProject(context, box, guest);
    if (plan.secrets) await bringFiles(await plan.secrets.files(), guest);
    await bringFiles(told, guest);
    if (plan.snapshot) await restoreFiles(context, plan.snapshot, plan.workspace.dir, guest);
    if (needsFiles) request.sealing?.(box);
    await becomeReady(context, box, report, { ...request, actor });
    // Whoever starts a command with the sandbox waits for the command's own record.
    if (!request.sealing) await starting;
  } catch (error) {
    context.toolchains.forget();
    await endBox(context, box, "start_failed", messageOf(error), actor);
    throw startError(error);
  }
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
  hashedReport: HashedReport,
  request: StartRequest & { actor: string },
): Promise<void> {
  if (box.ending) throw box.notReady();
  const kept = context.reports.keep(hashedReport);
  box.enforcement = kept.report;
  box.record.enforcement = hashedReport.key;
  box.record.state = SandboxState.READY;
  box.record.readyAt = Date.now();
  watchBox(context, box);
  const event = {
    type: "sandbox.ready",
    actor: request.actor,
    sandboxId: box.id,
    data: { enforcement: hashedReport.key },
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

export function startError(error: unknown): CaissonError {
  if (error instanceof CaissonError) return error;
  return new CaissonError("SANDBOX_FAILED", "the sandbox could not be started", { cause: error });
}

export function messageOf(error: unknown): string {
  return error instanceof CaissonError ? error.message : "the sandbox could not be started";
}
