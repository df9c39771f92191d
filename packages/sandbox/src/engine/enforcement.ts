import { hash } from "node:crypto";
import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  type Enforcement,
  EnforcementSchema,
  type Mechanism,
  MechanismSchema,
  MechanismState,
} from "@caisson/contract";
import { keepEncoding } from "@caisson/contract/codec";
import type { Sealed } from "@caisson/contract/link";
import type { StateChange, Store } from "@caisson/store";
import { isGroup, toLimits } from "../limits/index.ts";
import { tierName } from "../profiles/index.ts";
import { imageMechanism } from "./image.ts";
import { networkMechanism } from "./network/record.ts";
import { kinds } from "./records.ts";
import type { SandboxPlan } from "./spec.ts";
import { toolchainMechanism } from "./toolchains.ts";
import { layerMechanism, workspaceMechanism } from "./workspace.ts";

/** Limits that the guest sets itself; what it says of them counts more than what was planned. */
const guestLimits: Readonly<Record<string, string>> = {
  "limit.tmpfs": "limit.disk",
  "limit.files": "limit.open_files",
  "limit.pids": "limit.pids",
};

/** What really holds: what the driver says, what the guest says, and the limits. */
export function enforcementOf(plan: SandboxPlan, driver: readonly Mechanism[], sealed: Sealed): Enforcement {
  const byName = new Map<string, Mechanism>();
  const limits = new Map(plan.limitMechanisms.map((mechanism) => [mechanism.name, mechanism]));
  for (const mechanism of [...driver, ...sealed.holds.map(toMechanism)]) {
    const limit = limits.get(guestLimits[mechanism.name] ?? "");
    if (!limit) byName.set(mechanism.name, mechanism);
    else if (limit.state === MechanismState.ENFORCED && !isByHost(limit)) {
      limits.set(limit.name, { ...mechanism, name: limit.name });
    }
  }
  return create(EnforcementSchema, {
    tier: tierName(plan.driver.tier),
    driver: plan.driver.name,
    profile: plan.profile.name,
    mechanisms: [
      ...byName.values(),
      ...limits.values(),
      ...layerMechanism(plan.workspace, plan.limits.diskBytes),
      ...workspaceMechanism(plan.workspace),
      imageMechanism(plan.image),
      networkMechanism(plan.network),
      ...secretMechanism(plan.spec.secrets),
      toolchainMechanism(plan),
    ],
    limits: toLimits(plan.limits),
  });
}

/** Says which connections are opened, and that more is compared there. */
function secretMechanism(names: readonly string[]): Mechanism[] {
  if (names.length === 0) return [];
  const detail = `TLS to the hosts of ${names.join(", ")} is opened by an authority of this sandbox alone; there every Host is compared too`;
  return [
    create(MechanismSchema, {
      name: "network.secrets",
      state: MechanismState.ENFORCED,
      by: "the daemon's door",
      detail,
    }),
  ];
}

function toMechanism(hold: Sealed["holds"][number]): Mechanism {
  const { name, enforced, by, detail } = hold;
  const state = enforced ? MechanismState.ENFORCED : MechanismState.NOT_ENFORCED;
  return create(MechanismSchema, { name, state, by, detail });
}

/** Bounded by a control group from outside, whatever the guest does in addition. */
function isByHost(limit: Mechanism): boolean {
  return isGroup(limit.by);
}

/** A report and the hash that it is kept by. */
export interface HashedReport {
  readonly key: string;
  readonly report: Enforcement;
  readonly json: JsonValue;
}

export function hashed(report: Enforcement): HashedReport {
  const json = toJson(EnforcementSchema, report);
  return { key: hash("sha256", JSON.stringify(json)).slice(0, 32), report, json };
}

/** Reports by their hash: nearly all sandboxes share one, and each is stored once. */
export class EnforcementReports {
  readonly #store: Store;
  readonly #known = new Map<string, Enforcement>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The report as it is kept, and what has to be stored with it; `stored` says that it was. */
  keep({ key, report, json }: HashedReport): { report: Enforcement; changes: StateChange[]; stored(): void } {
    const known = this.#known.get(key);
    if (known) return { report: known, changes: [], stored: () => {} };
    // It goes out with every exit.
    keepEncoding(report);
    const stored = () => this.#known.set(key, report);
    return { report, changes: [{ put: kinds.enforcement, key, value: json }], stored };
  }

  find(key: string): Enforcement | undefined {
    if (key === "") return undefined;
    const known = this.#known.get(key);
    if (known) return known;
    const json = this.#store.get<Parameters<typeof fromJson>[1]>(kinds.enforcement, key);
    if (json === undefined) return undefined;
    const report = fromJson(EnforcementSchema, json, { ignoreUnknownFields: true });
    keepEncoding(report);
    this.#known.set(key, report);
    return report;
  }

  /** Drops the reports that no sandbox refers to any more. */
  unused(used: ReadonlySet<string>): StateChange[] {
    const changes: StateChange[] = [];
    for (const [key] of this.#store.scan(kinds.enforcement)) {
      if (used.has(key)) continue;
      this.#known.delete(key);
      changes.push({ remove: kinds.enforcement, key });
    }
    return changes;
  }
}
