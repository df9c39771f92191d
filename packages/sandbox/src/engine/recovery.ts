import { mkdirSync } from "node:fs";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { CaissonError, SandboxSpecSchema, SandboxState } from "@caisson/contract";
import { adoptBox, loadProcesses } from "./adopt.ts";
import { Box } from "./box.ts";
import { recoverApplies } from "./changes.ts";
import type { EngineContext } from "./context.ts";
import { planParts, startQueued } from "./create.ts";
import { Janitor } from "./janitor.ts";
import { endBox } from "./lifecycle.ts";
import { kinds, type SandboxRecord } from "./records.ts";
import { sweepSnapshots } from "./snapshots/place.ts";
import { findSnapshot } from "./snapshots/record.ts";
import { planSandbox } from "./spec.ts";

/** Takes over what an earlier daemon left: living sandboxes go on, dead ones are recorded as ended. */
export async function recover(context: EngineContext): Promise<void> {
  mkdirSync(context.sandboxesDir, { recursive: true, mode: 0o700 });
  const records = [...context.store.scan<SandboxRecord>(kinds.sandbox)].map(([, record]) => record);
  // What lies there now is an earlier daemon's; what this one's pool makes comes later.
  const janitor = new Janitor(context);
  context.afterwards(sweepSnapshots(context));
  await Promise.all([context.approvals.recover(), ...records.map((record) => recoverOne(context, record))]);
  const ended = [...context.store.scan<SandboxRecord>(kinds.ended)].map(([, record]) => record);
  await recoverApplies(context, [...records, ...ended]);
  context.afterwards(janitor.clean());
}

async function recoverOne(context: EngineContext, record: SandboxRecord): Promise<void> {
  const box = new Box(record);
  context.boxes.set(box.id, box);
  if (record.session) context.sessions.set(record.session.toLowerCase(), box);
  box.enforcement = context.reports.find(record.enforcement);
  try {
    if (record.state === SandboxState.QUEUED && !record.launch) return requeue(context, box);
    box.cgroup = context.cgroups.cgroups?.find(record.place);
    loadProcesses(context, box);
    if (record.bootId !== context.bootId) {
      return await endBox(context, box, "host_rebooted", "the host was started anew", "daemon");
    }
    await adoptBox(context, box);
  } catch (error) {
    context.log("error", "a sandbox could not be taken over", { sandbox: box.id, error: String(error) });
    await endBox(context, box, "guest_lost", CaissonError.from(error).message, "daemon");
  }
}

/** One that still waited goes on waiting, in the order of creation as far as callers can tell. */
function requeue(context: EngineContext, box: Box): void {
  const start = async () => {
    const spec = fromJson(SandboxSpecSchema, box.record.spec as JsonValue, { ignoreUnknownFields: true });
    const plan = await planSandbox(spec, planParts(context));
    if (spec.snapshot) plan.snapshot = findSnapshot(context, spec.snapshot);
    box.place = context.admission.enter(plan.limits);
    const request = { session: box.record.session, wait: true, remember: () => [] };
    await startQueued(context, box, plan, request, box.record.actor);
  };
  start().catch((error) => endBox(context, box, "start_failed", CaissonError.from(error).message, "daemon"));
}
