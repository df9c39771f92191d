import { CaissonError, SandboxState } from "@caisson/contract";
import type { NewEvent, StateChange } from "@caisson/store";
import type { Box } from "./box.ts";
import { cleanUp } from "./clean-up.ts";
import type { EngineContext } from "./context.ts";
import { closeForwards } from "./ports.ts";
import { oomKills } from "./process/exit.ts";
import type { Proc } from "./process/proc.ts";
import { type ExitRecord, kinds } from "./records.ts";
import { fetchLast } from "./transfer/pull.ts";

/**
 * Ends a sandbox, once, whoever asks first; resolves when it is gone and that is on disk, or when the disk
 * has refused it: then `box.unrecorded` says why, and it is tried again.
 */
export function endBox(
  context: EngineContext,
  box: Box,
  reason: string,
  message: string,
  actor: string,
): Promise<void> {
  box.ending ??= end(context, box, reason, message, actor);
  return box.ending;
}

async function end(
  context: EngineContext,
  box: Box,
  reason: string,
  message: string,
  actor: string,
): Promise<void> {
  const { record } = box;
  record.state = SandboxState.STOPPING;
  record.endReason = reason;
  record.endMessage = message;
  box.unwatch?.();
  await fetchLast(context, box, reason);
  box.outlet?.close();
  box.guest?.close();
  try {
    await box.launched?.kill();
  } catch (error) {
    context.log("error", "a sandbox could not be killed", { sandbox: box.id, error: String(error) });
  }
  box.place?.release();
  for (const proc of box.processes.values()) proc.settle?.();
  const running = box.running();
  const { events, changes } = finishProcesses(box, running, lostBecause(reason), actor);
  if (running.some((proc) => proc.record.exit?.oomKilled))
    record.endMessage = `memory was exhausted${message ? `: ${message}` : ""}`;
  record.state = SandboxState.ENDED;
  record.endedAt = Date.now();
  if (record.session) {
    events.push({ type: "session.closed", actor, sandboxId: box.id, data: { name: record.session } });
  }
  events.push({
    type: "sandbox.ended",
    actor,
    sandboxId: box.id,
    data: { reason, ...(record.endMessage ? { message: record.endMessage } : {}) },
  });
  const all: StateChange[] = [
    ...changes,
    ...context.approvals.sandboxEnded(box.id),
    ...closeForwards(context, box),
    { remove: kinds.sandbox, key: box.id },
    { put: kinds.ended, key: box.id, value: record },
  ];
  try {
    await context.commit(events, all);
    recordedAsEnded(context, box);
  } catch (error) {
    box.unrecorded = CaissonError.from(error);
    void context.commitSurely(events, all).then(() => recordedAsEnded(context, box));
  }
}

function recordedAsEnded(context: EngineContext, box: Box): void {
  box.unrecorded = undefined;
  context.boxes.delete(box.id);
  const session = box.record.session.toLowerCase();
  if (context.sessions.get(session) === box) context.sessions.delete(session);
  if (box.record.readyAt === 0) box.ready.reject(box.notReady());
  box.gone.resolve();
  // What it held is freed after the answer; a daemon that dies before that finds it again at its start.
  context.afterwards(cleanUp(context, box));
}

/** Gives processes that have no exit of their own their one terminal event. */
export function finishProcesses(
  box: Box,
  procs: readonly Proc[],
  lost: string,
  actor: string,
): { events: NewEvent[]; changes: StateChange[] } {
  const events: NewEvent[] = [];
  const changes: StateChange[] = [];
  for (const proc of procs) {
    // Where memory is the whole sandbox's, its kernel's included, what exhausts it ends all of it.
    const oomKilled = lost === "guest_lost" && oomKills(box) > proc.oomBefore;
    if (!proc.finish(lostExit(lost, oomKilled, Date.now() - proc.record.startedAt))) continue;
    proc.log.finish();
    events.push(
      ...proc.announced({
        type: "process.exited",
        actor,
        sandboxId: box.id,
        processId: proc.id,
        data: { code: proc.record.exit!.code, lost },
      }),
    );
    changes.push(proc.put(), { remove: kinds.stdin, key: proc.key });
  }
  return { events, changes };
}

function lostExit(lost: string, oomKilled: boolean, durationMs: number): ExitRecord {
  return {
    code: 137,
    signal: "SIGKILL",
    timedOut: false,
    oomKilled,
    truncated: false,
    durationMs: Math.max(0, durationMs),
    userMs: 0,
    systemMs: 0,
    maxRssBytes: 0,
    lost,
  };
}

/** Why a command has no exit of its own, by why its sandbox ended. */
function lostBecause(reason: string): string {
  if (reason === "host_rebooted") return "host_rebooted";
  return reason === "guest_lost" || reason === "guest_died" ? "guest_lost" : "sandbox_ended";
}
