import { SandboxState } from "@caisson/contract";
import type { EngineContext } from "./context.ts";
import { imageWorkdir } from "./image.ts";
import { inside } from "./inside.ts";
import type { SandboxRecord } from "./records.ts";
import { deniedPaths } from "./seal.ts";
import type { SandboxPlan } from "./spec.ts";
import { withheldNames } from "./transfer/withheld.ts";

/** What is recorded of a sandbox at its beginning. */
export function newRecord(
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
    image: plan.image?.name ?? "host",
    ...(plan.caches.length > 0 ? { caches: plan.caches } : {}),
    ...(plan.image?.id ? { imageId: plan.image.id } : {}),
    workspace: workspaceOf(plan),
    workdir: workdirOf(plan),
    labels: plan.spec.labels,
    agent: plan.spec.agent,
    limits: plan.limits,
    network: plan.network,
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

/** Where commands start unless they say otherwise. */
export function workdirOf(plan: SandboxPlan): string {
  return plan.workspace.dir || imageWorkdir(plan.image) || inside.home;
}

function workspaceOf(plan: SandboxPlan): SandboxRecord["workspace"] {
  const { dir, mode, transferred } = plan.workspace;
  if (!transferred) return { dir, mode };
  const withheld = withheldNames(dir, deniedPaths(plan));
  return { dir, mode, transferred, ...(withheld.length > 0 ? { withheld } : {}) };
}

/** For the trail: what was asked for, without variables, which may hold secrets. */
export function startingData(record: SandboxRecord): Record<string, unknown> {
  return {
    driver: record.driver,
    profile: record.profile,
    workspace: record.workspace.dir,
    mode: record.workspace.mode,
    ...(record.image === "host" ? {} : { image: record.image, image_id: record.imageId ?? "" }),
    network: record.network?.mode ?? "off",
    ...(record.session ? { session: record.session } : {}),
    ...(record.agent ? { agent: record.agent } : {}),
  };
}
