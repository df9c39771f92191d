import type { CallContext, UpdateNetworkRequest } from "@caisson/contract";
import { CaissonError } from "@caisson/contract";
import type { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";
import { hashed } from "../enforcement.ts";
import type { EngineNetwork } from "../engine.ts";
import { endedOrUnknown, livingBox, sandboxRecord } from "../find.ts";
import { presetSource } from "../presets.ts";
import { listDecisions } from "./decisions.ts";
import { completeNetwork, type NetworkPlanning, union } from "./plan.ts";
import {
  mergeNetworkLimits,
  modeOf,
  type NetworkRecord,
  networkMechanism,
  offline,
  toNetwork,
} from "./record.ts";
import { resolverOf } from "./resolver.ts";

export { Outlet } from "./outlet.ts";
export { type NetworkPlanning, planNetwork, type ResolvePresets } from "./plan.ts";
export { type NetworkRecord, networkMechanism, toNetwork } from "./record.ts";

/** What sandboxes may reach, as callers see and change it. */
export function engineNetwork(context: EngineContext): EngineNetwork {
  return {
    get(sandboxId) {
      const record = sandboxRecord(context, sandboxId).network ?? offline;
      const usage = livingBox(context, sandboxId)?.outlet?.usage;
      return {
        network: toNetwork(record),
        presetRules: record.presetRules,
        usage: {
          connections: usage?.connections ?? 0,
          sentBytes: BigInt(usage?.sent ?? 0),
          receivedBytes: BigInt(usage?.received ?? 0),
        },
      };
    },
    async update(request, call) {
      const box = livingBox(context, request.sandboxId);
      if (!box) throw endedOrUnknown(context, request.sandboxId);
      if (box.ending) throw box.notReady();
      const changed = await completeNetwork(
        changedRecord(box.record.network ?? offline, request),
        planning(context, box.record.workspace.dir, call),
      );
      await keep(context, box, changed, call);
      return {
        network: toNetwork(changed),
        presetRules: changed.presetRules,
        cut: box.outlet?.update() ?? 0,
      };
    },
    async decisions(query) {
      const sandboxId = query.sandboxId === "" ? "" : sandboxRecord(context, query.sandboxId).id;
      // Nobody waited for the latest ones to be written. A disk that takes nothing does not hide the others.
      await context.commit([]).catch(() => {});
      return listDecisions(context.store, { ...query, sandboxId });
    },
  };
}

export function planning(
  context: EngineContext,
  projectDir: string,
  call?: Pick<CallContext, "surroundings">,
): NetworkPlanning {
  return {
    bounds: context.settings.network.bounds,
    resolvePresets: async (names) => {
      const { presetRules } = await import("../../presets/index.ts");
      const resolver = await resolverOf(context);
      const source = presetSource(context, projectDir, call?.surroundings);
      return presetRules(names, source, (name) => resolver.resolve(name));
    },
  };
}

function changedRecord(record: NetworkRecord, request: UpdateNetworkRequest): NetworkRecord {
  const base = request.clear ? { ...offline, mode: record.mode, limits: record.limits } : record;
  const gone = new Set(request.remove);
  const without = (list: readonly string[]) => list.filter((rule) => !gone.has(rule));
  const known = new Set([...record.allow, ...record.deny, ...record.presets]);
  for (const rule of gone) {
    if (!known.has(rule))
      throw new CaissonError("INVALID_INPUT", `the sandbox has no network rule ${JSON.stringify(rule)}`);
  }
  const names = request.allow.length + request.presets.length > 0;
  return {
    // Whoever names what to reach and says nothing else wants to reach it.
    mode: modeOf(request.mode) ?? (names && base.mode === "off" ? "allow" : base.mode),
    allow: union(without(base.allow), request.allow),
    deny: union(without(base.deny), request.deny),
    presets: union(without(base.presets), request.presets),
    presetRules: [],
    limits: mergeNetworkLimits(request.limits, base.limits),
  };
}

/** On disk before it is in force: a daemon that dies in between leaves what was acknowledged. */
async function keep(
  context: EngineContext,
  box: Box,
  changed: NetworkRecord,
  call: Pick<CallContext, "actor">,
): Promise<void> {
  box.record.network = changed;
  const { mode, allow, deny, presets } = changed;
  const event = {
    type: "network.changed",
    actor: call.actor,
    sandboxId: box.id,
    data: { mode, allow, deny, presets },
  };
  if (!box.enforcement) return void (await context.commit([event], [box.put()]));
  const mechanisms = box.enforcement.mechanisms.map((one) =>
    one.name === "network" ? networkMechanism(changed) : one,
  );
  const report = hashed({ ...box.enforcement, mechanisms });
  const kept = context.reports.keep(report);
  box.record.enforcement = report.key;
  await context.commit([event], [box.put(), ...kept.changes]);
  kept.stored();
  box.enforcement = kept.report;
}
