import { create } from "@bufbuild/protobuf";
import {
  CaissonError,
  type CallContext,
  type Enforcement,
  type Limits,
  LimitsSchema,
  MechanismSchema,
  MechanismState,
} from "@caisson/contract";
import type { Launched } from "../../driver/driver.ts";
import { isGroup } from "../../limits/index.ts";
import type { EngineContext } from "../context.ts";
import { planParts } from "../create.ts";
import { enforcementOf } from "../enforcement.ts";
import type { SpecInit } from "../engine.ts";
import { newRecord } from "../new-record.ts";
import { planSandbox, type SandboxPlan } from "../spec.ts";
import { specOfImported } from "./imported.ts";
import { runningOf } from "./machine.ts";
import { parts, type SnapshotRecord, snapshotDir } from "./record.ts";

/** A machine from outside, as if it had been asked for here. */
export interface Adopted {
  snapshot: SnapshotRecord;
  /** The largest machine that it may be: that of a sandbox which was asked for here. */
  machineMemory: number | undefined;
  /** What holds once it is launched. */
  report(launched: Launched): Enforcement;
}

/** What a sandbox of this daemon's would be allowed; of the snapshot's own record nothing but its commands is believed. */
export async function adoptMachine(
  context: EngineContext,
  snapshot: SnapshotRecord,
  init: SpecInit,
  call: CallContext,
): Promise<Adopted> {
  const limits = await memoryOf(context, snapshot);
  const asked = specOfImported(context, snapshot, limits ? { ...init, limits } : init);
  const spec = (await context.parts.complete?.(asked)) ?? asked;
  const plan = await planSandbox(spec, planParts(context, call));
  const { dir } = snapshot.sandbox.workspace;
  if (plan.workspace.dir !== dir) {
    const words = `in the memory of this machine its project lies at ${dir}: it must lie there here too`;
    throw new CaissonError("INVALID_INPUT", words);
  }
  const { processes, outputs, lastProcess } = runningOf(snapshot, call.actor);
  const sandbox = { ...newRecord(plan, snapshot.sandbox.id, "", call.actor, context), lastProcess };
  return {
    snapshot: { ...snapshot, sandbox, processes, outputs },
    machineMemory:
      plan.limits.memoryBytes === 0 ? undefined : (plan.machineMemory ?? plan.driver.sizes?.usual),
    report: (launched) => enforcementAround(plan, launched),
  };
}

/** It asks for the machine that it is, which the machine's policy may not allow. */
async function memoryOf(context: EngineContext, snapshot: SnapshotRecord): Promise<Limits | undefined> {
  const driver = context.parts.drivers.find(({ name }) => name === snapshot.sandbox.driver);
  const size = await driver?.mustFit?.(`${snapshotDir(context, snapshot.id)}/${parts.machine}`);
  if (!driver?.sizes || size === undefined || size <= driver.sizes.usual) return undefined;
  return create(LimitsSchema, { memoryBytes: BigInt(size) });
}

/** What is known to hold: what is around the machine. What its guest closed inside was not closed by this daemon. */
function enforcementAround(plan: SandboxPlan, launched: Launched): Enforcement {
  const outside = { ...plan, limitMechanisms: plan.limitMechanisms.map(ifOutside) };
  const report = enforcementOf(outside, launched.mechanisms(), {
    $typeName: "caisson.link.v1.Sealed",
    holds: [],
  });
  const detail = "the machine was imported as it was; what its guest closed inside is not known";
  const guest = create(MechanismSchema, { name: "guest", state: MechanismState.NOT_ENFORCED, detail });
  return { ...report, mechanisms: [...report.mechanisms, guest] };
}

function ifOutside(limit: SandboxPlan["limitMechanisms"][number]): SandboxPlan["limitMechanisms"][number] {
  if (limit.state !== MechanismState.ENFORCED || isGroup(limit.by)) return limit;
  return { ...limit, state: MechanismState.NOT_ENFORCED, detail: "bounded inside, if at all" };
}
