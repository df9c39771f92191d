import { create } from "@bufbuild/protobuf";
import {
  CaissonError,
  type CallContext,
  SandboxSpecSchema,
  SandboxState,
  WorkspaceMode,
} from "@caisson/contract";
import { chooseDriver } from "../driver/choose.ts";
import { newSandboxId } from "../pool/sandbox-id.ts";
import { askForProfile, askForWritableBind } from "./asking.ts";
import { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import type { SpecInit } from "./engine.ts";
import { resolveImage } from "./image.ts";
import { kindOf } from "./kind.ts";
import { endBox } from "./lifecycle.ts";
import { planning } from "./network/index.ts";
import { newRecord } from "./new-record.ts";
import type { Taken } from "./parts.ts";
import { grantSecrets } from "./secrets.ts";
import { checkMachineSpec, continueMachine } from "./snapshots/continue-machine.ts";
import { findSnapshot } from "./snapshots/record.ts";
import { specFrom } from "./snapshots/restore.ts";
import { type PlanningParts, planSandbox, type SandboxPlan } from "./spec.ts";
import {
  type Chosen,
  messageOf,
  register,
  type StartRequest,
  startBox,
  startError,
  unregister,
} from "./start-box.ts";
import { resolveWorkspace } from "./workspace.ts";

export interface CreateRequest extends StartRequest {
  session: string;
  /** Wait for a place instead of returning a queued sandbox. */
  wait: boolean;
  /** The sandbox is there, whatever comes of it. */
  made?(box: Box): void;
}

/** Makes a sandbox; resolves when it is ready, or queued if the request does not wait. */
export async function createBox(
  context: EngineContext,
  init: SpecInit,
  request: CreateRequest,
  call: CallContext,
): Promise<Box> {
  if (context.closing) throw new CaissonError("UNAVAILABLE", "the daemon is stopping");
  if (init.snapshot) {
    const snapshot = findSnapshot(context, init.snapshot);
    if (snapshot.memory) {
      const machine = { ...request, labels: checkMachineSpec(snapshot, init) };
      if (!snapshot.imported) return continueMachine(context, snapshot, call, machine);
      const { adoptMachine } = await import("./snapshots/continue-imported.ts");
      const adopted = await adoptMachine(context, snapshot, init, call);
      return continueMachine(context, adopted.snapshot, call, machine, adopted);
    }
    const imported = snapshot.imported && (await import("./snapshots/imported.ts"));
    init = imported ? imported.specOfImported(context, snapshot, init) : specFrom(snapshot, init);
  }
  // Looked at while the configuration is read; what the policy forbids is told before what is found.
  const workspace = resolveWorkspace(create(SandboxSpecSchema, init).workspace, context.home);
  workspace.catch(() => {});
  const spec = (await context.parts.complete?.(init)) ?? init;
  const plan = await planSandbox(spec, { ...planParts(context, call), workspace });
  if (plan.workspace.mode === WorkspaceMode.BIND_WRITE)
    await askForWritableBind(context, [plan.workspace.dir, plan.spec.agent], call);
  if (init.snapshot) plan.snapshot = findSnapshot(context, init.snapshot);
  const place = context.admission.enter(plan.limits);
  if (!place.waiting) {
    const chosen = await takeOrRelease(context, plan, place.release);
    const box = new Box(newRecord(plan, chosen.taken.id, request.session, call.actor, context));
    box.place = place;
    request.made?.(box);
    await startBox(context, box, plan, chosen, request, call.actor);
    context.closedAhead.expect(plan);
    if (!chosen.closed && !chosen.taken.warm) context.closedMachines.expect(plan, chosen.taken);
    return box;
  }
  const box = new Box(newRecord(plan, newSandboxId(), request.session, call.actor, context));
  box.place = place;
  return queueBox(context, box, plan, request, call);
}

export function planParts(
  context: EngineContext,
  call?: Pick<CallContext, "surroundings" | "actor" | "signal">,
): PlanningParts {
  return {
    ...(call && context.approvals.asksFor("profile")
      ? { askForProfile: (...asked) => askForProfile(context, asked, call) }
      : {}),
    home: context.home,
    profiles: context.profiles,
    cgroups: context.cgroups,
    chooseDriver: (driver, minimumTier, needs) =>
      chooseDriver(context.parts.drivers, { driver, minimumTier, needs }),
    findImage: (name) => resolveImage(name, context.images, context.home),
    network: (projectDir) => planning(context, projectDir, call),
    grantSecrets: (...asked) => grantSecrets(context, ...asked),
    findToolchains: () => context.toolchains.find(call?.surroundings),
  };
}

/** A record of the log says that it waits; a place lets it start. */
async function queueBox(
  context: EngineContext,
  box: Box,
  plan: SandboxPlan,
  request: CreateRequest,
  call: CallContext,
): Promise<Box> {
  box.record.state = SandboxState.QUEUED;
  register(context, box);
  request.made?.(box);
  try {
    await context.commit(
      [{ type: "sandbox.queued", actor: call.actor, sandboxId: box.id }],
      [box.put(), ...request.remember(box.id)],
    );
  } catch (error) {
    unregister(context, box);
    box.place?.release();
    throw error;
  }
  const started = startQueued(context, box, plan, request, call.actor);
  if (!request.wait) {
    started.catch(() => {});
    return box;
  }
  const abandoned = () =>
    void endBox(context, box, "start_failed", "the caller went away while it waited", call.actor);
  call.signal.addEventListener("abort", abandoned, { once: true });
  try {
    await started;
  } finally {
    call.signal.removeEventListener("abort", abandoned);
  }
  return box;
}

/** Waits for the place of a queued sandbox and starts it. Also used for those that an earlier daemon queued. */
export async function startQueued(
  context: EngineContext,
  box: Box,
  plan: SandboxPlan,
  request: CreateRequest,
  actor: string,
): Promise<void> {
  await Promise.race([box.place?.waiting, box.gone.promise]);
  if (box.ending) throw box.notReady();
  let taken: Taken;
  try {
    taken = await context.parts.pool.take(kindOf(plan));
  } catch (error) {
    await endBox(context, box, "start_failed", messageOf(error), actor);
    throw startError(error);
  }
  box.record.place = taken.id;
  box.record.launch = taken.launched.record;
  await startBox(context, box, plan, { taken }, { ...request, remember: () => [] }, actor);
}

async function takeOrRelease(
  context: EngineContext,
  plan: SandboxPlan,
  release: () => void,
): Promise<Chosen> {
  try {
    return (
      context.closedAhead.take(plan) ??
      (await context.closedMachines.take(plan)) ?? { taken: await context.parts.pool.take(kindOf(plan)) }
    );
  } catch (error) {
    release();
    throw startError(error);
  }
}
