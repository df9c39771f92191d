import { SandboxState } from "@caisson/contract";
import type { StateChange } from "@caisson/store";
import type { Guest } from "../link/guest.ts";
import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import { endBox, finishProcesses } from "./lifecycle.ts";
import { Outlet } from "./network/index.ts";
import { reopenForwards } from "./ports.ts";
import { oomKills } from "./process/exit.ts";
import { recoverLog } from "./process/output.ts";
import { Proc } from "./process/proc.ts";
import { feedStdin, processExited } from "./process/start.ts";
import { kinds, type ProcessRecord } from "./records.ts";
import { adoptSecrets } from "./secrets.ts";
import { watchBox } from "./watch.ts";

const SIGKILL = 9;

/** Goes on with a sandbox that an earlier daemon started, or records that it is gone. */
export async function adoptBox(context: EngineContext, box: Box): Promise<void> {
  const { record } = box;
  box.place = context.admission.readmit(record.limits);
  const driver = context.parts.drivers.find(({ name }) => name === record.driver);
  box.launched = record.launch && (await driver?.adopt(record.place, record.launch));
  if (!box.launched) {
    return endBox(context, box, "guest_died", "it was gone when the daemon came back", "daemon");
  }
  if (box.launched.cgroup) {
    box.cgroup = box.launched.cgroup;
    for (const proc of box.processes.values()) proc.oomBefore = oomKills(box);
  }
  if (record.state !== SandboxState.READY) {
    return endBox(context, box, "start_failed", "the daemon was ended while it was being made", "daemon");
  }
  await continueBox(context, box);
}

/** Opens the link to a sandbox that is sealed already and brings both sides to the same state. */
export async function continueBox(context: EngineContext, box: Box): Promise<void> {
  const { record } = box;
  if (!box.launched) throw box.notReady();
  const sinks = box.running().map((proc) => [proc.record.stream, proc.log] as const);
  box.guest = await context.parts.openGuest(box.launched, sinks);
  box.interceptor = await adoptSecrets(context, record);
  box.outlet = new Outlet(context, box);
  box.outlet.attach(box.guest);
  box.oomSeen = oomKills(box);
  await reconcile(context, box, box.guest);
  await reopenForwards(context, box);
  watchBox(context, box);
  box.ready.resolve();
}

/** Every process is in memory again before the guest is asked, because its answer may tell of exits at once. */
export function loadProcesses(context: EngineContext, box: Box): void {
  const records = [...context.store.scan<ProcessRecord>(kinds.process, `${box.id}/`)]
    .map(([, record]) => record)
    .sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)));
  for (const record of records) {
    const proc = new Proc(box, record);
    proc.log = recoverLog(context, box.record, record, (exited) => processExited(context, proc, exited));
    proc.oomBefore = box.cgroup?.oomKills() ?? 0;
    box.processes.set(proc.id, proc);
    if (record.exit) {
      proc.log.finish();
      proc.exited.resolve();
    } else {
      proc.release = box.use();
    }
    box.record.lastProcess = Math.max(box.record.lastProcess, Number(record.id.slice(1)));
  }
}

/** Brings what is recorded and what the guest has to the same state. */
async function reconcile(context: EngineContext, box: Box, guest: Guest): Promise<void> {
  const states = new Map(guest.hello.processes.map((state) => [state.stream, state]));
  for (const proc of box.processes.values()) {
    const state = states.get(proc.record.stream);
    states.delete(proc.record.stream);
    const unannounced = proc.announced();
    if (unannounced.length > 0) await context.commit(unannounced, [proc.put()]);
    if (state && proc.record.exit) guest.forget(proc.record.stream);
    else if (state) resumeStdin(context, proc, guest, Number(state.stdinPosition));
  }
  // Nobody was told of these: the daemon died between starting them and recording it.
  for (const stream of states.keys()) {
    await guest.signal(stream, SIGKILL, true).catch(() => {});
    guest.forget(stream);
  }
  await finishUnknown(context, box, guest);
  const finished = box.record.runs !== "" && box.processes.get(box.record.runs)?.record.exit;
  if (finished) void endBox(context, box, "run_finished", "", "daemon");
}

/** Recorded, but the guest has never heard of them: they did not start. */
async function finishUnknown(context: EngineContext, box: Box, guest: Guest): Promise<void> {
  const known = new Set(guest.hello.processes.map((state) => state.stream));
  const unknown = box.running().filter((proc) => !known.has(proc.record.stream));
  if (unknown.length === 0) return;
  for (const proc of unknown) guest.forget(proc.record.stream);
  const { events, changes } = finishProcesses(box, unknown, "guest_lost", "daemon");
  await context.commit(events, changes satisfies StateChange[]);
}

function resumeStdin(context: EngineContext, proc: Proc, guest: Guest, taken: number): void {
  const stored = context.store.get<string>(kinds.stdin, proc.key);
  proc.stdinOffset = taken;
  if (stored === undefined) return;
  const stdin = Buffer.from(stored, "base64");
  if (taken < stdin.length) feedStdin(proc, guest, stdin.subarray(taken));
  else if (!proc.record.keepStdin) guest.endStdin(proc.record.stream);
}
