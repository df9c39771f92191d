import {
  CaissonError,
  type CallContext,
  MechanismState,
  SandboxState,
  type Surroundings,
  WorkspaceMode,
} from "@caisson/contract";
import type { Sealed } from "@caisson/contract/link";
import type { StateChange } from "@caisson/store";
import { chooseDriver } from "../driver/choose.ts";
import { sameBounds } from "../limits/index.ts";
import type { SealInit } from "../link/guest.ts";
import { newSandboxId } from "../pool/sandbox-id.ts";
import { preparedLimits, tierName } from "../profiles/index.ts";
import { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import { enforcementOf } from "./enforcement.ts";
import type { SpecInit } from "./engine.ts";
import { envList, hostnameOf, inside, sandboxEnv } from "./inside.ts";
import { endBox } from "./lifecycle.ts";
import type { Taken } from "./parts.ts";
import type { SandboxRecord } from "./records.ts";
import { type PlanningParts, planSandbox, type SandboxPlan } from "./spec.ts";
import { coveredConfigs, toolchainMounts } from "./toolchains.ts";
import { watchBox } from "./watch.ts";
import { fillLayer, workspaceMounts } from "./workspace.ts";

export interface CreateRequest {
  session: string;
  /** Wait for a place instead of returning a queued sandbox. */
  wait: boolean;
  /** Stored in the transaction that lets the sandbox be acknowledged. */
  remember(sandboxId: string): StateChange[];
  /** Called when the seal is on its way: what is sent now is handled right after it. */
  sealing?(box: Box): void;
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
  const spec = (await context.parts.complete?.(init)) ?? init;
  const plan = await planSandbox(spec, planParts(context, call.surroundings));
  const place = context.admission.enter(plan.limits);
  if (!place.waiting) {
    const taken = await takeOrRelease(context, plan, place.release);
    const box = new Box(newRecord(plan, taken.id, request.session, call.actor, context));
    box.place = place;
    request.made?.(box);
    await startBox(context, box, plan, taken, request, call.actor);
    return box;
  }
  const box = new Box(newRecord(plan, newSandboxId(), request.session, call.actor, context));
  box.place = place;
  return queueBox(context, box, plan, request, call);
}

export function planParts(context: EngineContext, surroundings?: Surroundings): PlanningParts {
  return {
    home: context.home,
    profiles: context.profiles,
    cgroups: context.cgroups,
    chooseDriver: (driver, minimumTier) => chooseDriver(context.parts.drivers, { driver, minimumTier }),
    findToolchains: () => context.toolchains.find(surroundings),
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
    taken = await context.parts.pool.take({ driver: plan.driver.name, image: plan.spec.image || "host" });
  } catch (error) {
    await endBox(context, box, "start_failed", messageOf(error), actor);
    throw startError(error);
  }
  box.record.place = taken.id;
  box.record.launch = taken.launched.record;
  await startBox(context, box, plan, taken, { ...request, remember: () => [] }, actor);
}

async function takeOrRelease(context: EngineContext, plan: SandboxPlan, release: () => void): Promise<Taken> {
  try {
    return await context.parts.pool.take({ driver: plan.driver.name, image: plan.spec.image || "host" });
  } catch (error) {
    release();
    throw startError(error);
  }
}

/** Specialises a sandbox that was taken: hands in the project, closes the wall, records that it is ready. */
async function startBox(
  context: EngineContext,
  box: Box,
  plan: SandboxPlan,
  taken: Taken,
  request: CreateRequest,
  actor: string,
): Promise<void> {
  const { launched, guest } = taken;
  box.launched = launched;
  box.guest = guest;
  box.record.launch = launched.record;
  box.record.state = SandboxState.STARTING;
  register(context, box);
  try {
    if (context.cgroups.cgroups) {
      box.cgroup = context.cgroups.cgroups.find(taken.id);
      // Those of the pool have the default profile's bounds already.
      if (!sameBounds(plan.limits, preparedLimits)) box.cgroup.configure(plan.limits);
    }
    if (plan.workspace.mode === WorkspaceMode.COPY)
      await fillLayer(plan.workspace, taken.dir, context.parts.guest);
    const mapOwner = launched.record.uid !== process.getuid?.();
    const project = workspaceMounts(plan.workspace, taken.dir, mapOwner);
    const tools = toolchainMounts(plan.toolchains, plan.workspace, mapOwner);
    const sources = [...project.sources, ...tools.sources];
    const mounts = [...project.mounts, ...tools.mounts];
    // Recorded before anything of the project enters it.
    const starting = context.commit(
      [{ type: "sandbox.starting", actor, sandboxId: box.id, data: startingData(box.record) }],
      [box.put()],
    );
    const sealed = guest.seal(sealOf(box, plan, mounts));
    request.sealing?.(box);
    const attached = sources.length > 0 ? launched.attach(sources) : Promise.resolve([]);
    await settled([starting, attached, sealedOrEnded(sealed, launched.ended)]);
    await becomeReady(context, box, plan, await sealed, { ...request, actor });
  } catch (error) {
    context.toolchains.forget();
    await endBox(context, box, "start_failed", messageOf(error), actor);
    throw startError(error);
  }
}

async function becomeReady(
  context: EngineContext,
  box: Box,
  plan: SandboxPlan,
  sealed: Sealed,
  request: Pick<CreateRequest, "remember" | "sealing"> & { actor: string },
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

function sealOf(box: Box, plan: SandboxPlan, mounts: NonNullable<SealInit["mounts"]>): SealInit {
  const expand = (path: string) => (path.startsWith("~") ? inside.home + path.slice(1) : path);
  return {
    mounts,
    hostname: hostnameOf(box.id),
    uid: inside.uid,
    gid: inside.gid,
    user: inside.user,
    home: inside.home,
    workdir: box.record.workdir,
    env: envList(sandboxEnv(box.id, plan.profile, plan.spec.env, plan.toolchains?.env)),
    tmpfsBytes: BigInt(plan.limits.diskBytes),
    // One for every four kilobytes: empty files take memory too.
    tmpfsInodes: BigInt(Math.ceil(plan.limits.diskBytes / 4096)),
    syscalls: plan.syscalls,
    denyRead: [...plan.profile.denyRead.map(expand), ...coveredConfigs(plan.toolchains, plan.workspace)],
    allowWrite: plan.profile.allowWrite.map(expand),
    rlimits: { openFiles: BigInt(plan.limits.openFiles), processes: BigInt(plan.limits.pids) },
    required: [],
    description: {
      id: box.id,
      tier: tierName(box.record.tier),
      driver: box.record.driver,
      profile: box.record.profile,
      holds: box.launched!.mechanisms().map(({ name, state, by, detail }) => ({
        name,
        enforced: state === MechanismState.ENFORCED,
        by,
        detail,
      })),
    },
  };
}

function newRecord(
  plan: SandboxPlan,
  id: string,
  session: string,
  actor: string,
  context: EngineContext,
): SandboxRecord {
  return {
    id,
    place: id,
    session,
    state: SandboxState.STARTING,
    endReason: "",
    endMessage: "",
    tier: plan.driver.tier,
    driver: plan.driver.name,
    profile: plan.profile.name,
    image: plan.spec.image || "host",
    workspace: { dir: plan.workspace.dir, mode: plan.workspace.mode },
    workdir: plan.workspace.dir || inside.home,
    labels: plan.spec.labels,
    agent: plan.spec.agent,
    limits: plan.limits,
    idleTtlS: plan.idleTtlS,
    maxAgeS: plan.maxAgeS,
    createdAt: Date.now(),
    readyAt: 0,
    endedAt: 0,
    seq: context.store.head,
    enforcement: "",
    spec: plan.asked,
    actor,
    runs: "",
    lastProcess: 0,
    launch: undefined,
    bootId: context.bootId,
  };
}

/** For the trail: what was asked for, without variables, which may hold secrets. */
function startingData(record: SandboxRecord): Record<string, unknown> {
  return {
    driver: record.driver,
    profile: record.profile,
    workspace: record.workspace.dir,
    mode: record.workspace.mode,
    ...(record.session ? { session: record.session } : {}),
    ...(record.agent ? { agent: record.agent } : {}),
  };
}

function register(context: EngineContext, box: Box): void {
  context.boxes.set(box.id, box);
  if (box.record.session) context.sessions.set(box.record.session.toLowerCase(), box);
}

function unregister(context: EngineContext, box: Box): void {
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
    if (error instanceof CaissonError && error.code === "GUEST_LOST") await Promise.race([died, sleep(200)]);
    throw error;
  }
}

/** Resolves when all have; throws the first error that is not merely a consequence of another's. */
async function settled(promises: Promise<unknown>[]): Promise<void> {
  const failures = (await Promise.allSettled(promises)).filter((result) => result.status === "rejected");
  const refusal = failures.find(
    ({ reason }) => reason instanceof CaissonError && reason.code !== "SANDBOX_FAILED",
  );
  const failure = refusal ?? failures[0];
  if (failure) throw failure.reason;
}

function startError(error: unknown): CaissonError {
  if (error instanceof CaissonError) return error;
  return new CaissonError("SANDBOX_FAILED", "the sandbox could not be started", { cause: error });
}

function messageOf(error: unknown): string {
  return error instanceof CaissonError ? error.message : "the sandbox could not be started";
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
