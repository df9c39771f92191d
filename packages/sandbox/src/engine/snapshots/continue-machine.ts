import { existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { CaissonError, type CallContext, SandboxSpecSchema, SandboxState } from "@caisson/contract";
import type { StateChange } from "@caisson/store";
import { continueBox, loadProcesses } from "../adopt.ts";
import { bound, groupOf } from "../bounds.ts";
import { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";
import { hashed } from "../enforcement.ts";
import type { SpecInit } from "../engine.ts";
import { endBox } from "../lifecycle.ts";
import { kinds, processKey, type SandboxRecord } from "../records.ts";
import { messageOf, register, startError } from "../start-box.ts";
import type { Adopted } from "./continue-imported.ts";
import { parts, type SnapshotRecord, snapshotDir } from "./record.ts";
import { given, restoreLayer } from "./restore.ts";

export interface MachineRequest {
  session: string;
  labels: Record<string, string>;
  /** Stored in the transaction that lets the sandbox be acknowledged. */
  remember(sandboxId: string): StateChange[];
}

/** What can be said of a machine that goes on: the rest was decided when it was made. One from outside was decided nowhere. */
const fitting = new Set(["snapshot", "labels", "driver", "workspace"]);
const fittingImported = new Set([...fitting, "network", "idleTtlS", "maxAgeS"]);

/** Refuses to make a machine go on as something that it is not; returns its labels. */
export function checkMachineSpec(
  { imported, sandbox }: SnapshotRecord,
  init: SpecInit,
): Record<string, string> {
  const asked = create(SandboxSpecSchema, init);
  const known = imported ? fittingImported : fitting;
  const more = Object.keys(given(asked)).filter((name) => !known.has(name));
  const isOther = !imported && asked.workspace?.dir && asked.workspace.dir !== sandbox.workspace.dir;
  if (isOther) more.push("workspace");
  if (more.length === 0) return asked.labels;
  const words = "a machine that was kept with its memory goes on as it was";
  throw new CaissonError("INVALID_INPUT", `${words}: leave out ${more.join(", ")}`);
}

/**
 * A sandbox that goes on where a machine was kept, its commands too. They are known to it by the same numbers; what
 * they had printed is copied.
 */
export async function continueMachine(
  context: EngineContext,
  snapshot: SnapshotRecord,
  call: CallContext,
  request: MachineRequest,
  adopted?: Adopted,
): Promise<Box> {
  const place = context.admission.enter(snapshot.sandbox.limits);
  if (place.waiting) {
    place.release();
    throw new CaissonError("QUEUE_FULL", "there is no place for another sandbox now");
  }
  const dir = snapshotDir(context, snapshot.id);
  let launch: Awaited<ReturnType<typeof context.parts.pool.launch>>;
  try {
    const kind = { driver: snapshot.sandbox.driver, image: "host", machine: `${dir}/${parts.machine}` };
    const atMost = adopted?.machineMemory === undefined ? {} : { memoryBytes: adopted.machineMemory };
    launch = await context.parts.pool.launch({ ...kind, ...atMost });
  } catch (error) {
    place.release();
    throw startError(error);
  }
  const { id, launched } = launch;
  const box = new Box(recordOf(context, snapshot, id, request, call.actor));
  box.place = place;
  box.launched = launched;
  box.record.launch = launched.record;
  box.cgroup = groupOf(context, launch);
  register(context, box);
  try {
    const driver = context.parts.drivers.find(({ name }) => name === snapshot.sandbox.driver)!;
    await bound(box.cgroup, { driver, limits: snapshot.sandbox.limits }, launched);
    if (existsSync(`${dir}/${parts.output}`))
      await cp(`${dir}/${parts.output}`, `${launch.dir}/${parts.output}`, { recursive: true });
    // Of an imported one everything is fetched when it is asked for: nothing was ever compared with this project.
    if (!snapshot.imported) await restoreLayer(context, snapshot, launch.dir);
    const processes = snapshot.processes.map((record) => ({
      put: kinds.process,
      key: processKey(id, record.id),
      value: { ...record, sandboxId: id },
    }));
    const outputs = Object.entries(snapshot.outputs).map(([process, value]) => ({
      put: kinds.output,
      key: processKey(id, process),
      value,
    }));
    const report = adopted && context.reports.keep(hashed(adopted.report(launched)));
    box.enforcement = report?.report ?? context.reports.find(box.record.enforcement);
    if (report) box.record.enforcement = hashed(report.report).key;
    const data = { snapshot: snapshot.id, from: snapshot.sandbox.id };
    await context.commit(
      [{ type: "sandbox.restored", actor: call.actor, sandboxId: id, data }],
      [box.put(), ...processes, ...outputs, ...(report?.changes ?? []), ...request.remember(id)],
    );
    report?.stored();
    loadProcesses(context, box);
    await continueBox(context, box);
    return box;
  } catch (error) {
    await endBox(context, box, "start_failed", messageOf(error), call.actor);
    throw startError(error);
  }
}

function recordOf(
  context: EngineContext,
  { sandbox }: SnapshotRecord,
  id: string,
  { session, labels }: MachineRequest,
  actor: string,
): SandboxRecord {
  const now = Date.now();
  const fresh = { id, place: id, session, actor, createdAt: now, readyAt: now, seq: context.store.head };
  const state = SandboxState.READY;
  const labelled = Object.keys(labels).length > 0 ? { labels } : {};
  return { ...sandbox, ...fresh, ...labelled, state, runs: "", paused: false, bootId: context.bootId };
}
