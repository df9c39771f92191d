import { create } from "@bufbuild/protobuf";
import { CaissonError, type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";
import type { Cgroups } from "./cgroup/cgroup.ts";
import type { FoundCgroups } from "./cgroup/find.ts";
import { type LimitName, type LimitValues, limitNames } from "./values.ts";

/** By what means a limit is enforced on this machine; `by` undefined if it cannot be. */
interface Means {
  by: string | undefined;
  detail: string;
}

/** What can bound a sandbox from outside: control groups of ours, or an engine that keeps its own. */
export type Bounder = Pick<Cgroups, "controls"> & { by: string };

function meansOf(key: LimitName, found: FoundCgroups, engine: Bounder | undefined): Means {
  const cgroups = engine ?? found.cgroups;
  const why = cgroups ? `the ${cgroups.by} controller is missing` : reasonOf(found);
  const byGroup = cgroups?.by;
  switch (key) {
    case "cpuMillis":
      return { by: cgroups?.controls.cpu ? byGroup : undefined, detail: why };
    case "memoryBytes":
      return cgroups?.controls.memory
        ? { by: byGroup, detail: "" }
        : {
            by: "watcher",
            detail: `${why}: memory is measured several times a second, and the largest process is ended`,
          };
    case "pids":
      return cgroups?.controls.pids ? { by: byGroup, detail: "" } : { by: "rlimit", detail: why };
    case "diskBytes":
      return { by: "tmpfs size", detail: "each private mount" };
    case "openFiles":
      return { by: "rlimit", detail: "" };
    case "outputBytes":
      return { by: "daemon", detail: "" };
    case "timeoutMs":
      return { by: "guest", detail: "" };
  }
}

function reasonOf(found: FoundCgroups): string {
  return found.cgroups ? "" : found.reason;
}

/** Threads that a sandbox's own kernel may have on the host; far more than it needs, far less than the host has. */
const outerPids = 8192;

/** What a sandbox's control group gets where the host cannot count what runs inside. */
export function outerLimits(driver: { cannotCountProcesses?: boolean }, limits: LimitValues): LimitValues {
  return driver.cannotCountProcesses ? { ...limits, pids: outerPids } : limits;
}

/** The same plan for a driver inside which processes cannot be counted. */
export function withoutCounting(plan: readonly Mechanism[], requested: LimitValues): Mechanism[] {
  const name = "limit.pids";
  const detail = "the sandbox's own kernel does not count processes";
  if (requested.pids !== 0) {
    throw new CaissonError("NOT_ENFORCEABLE", `${name} cannot be enforced here: ${detail}`, {
      metadata: { mechanism: name },
    });
  }
  const lacking = create(MechanismSchema, { name, state: MechanismState.NOT_ENFORCED, detail });
  return plan.map((mechanism) => (mechanism.name === name ? lacking : mechanism));
}

/** Is that a control group, whoever keeps it? */
export function isGroup(by: string): boolean {
  return by.startsWith("cgroup ") || by === engineGroup;
}

/** How a container engine's control groups are called. */
export const engineGroup = "container engine";

/**
 * What becomes of each limit here. One that was asked for by name and cannot be enforced is an
 * error; one that is only the profile's is reported.
 */
export function planLimits(
  limits: LimitValues,
  requested: LimitValues,
  found: FoundCgroups,
  engine?: Bounder,
): Mechanism[] {
  return limitNames.map(({ key, mechanism: name }) => {
    if (limits[key] === 0)
      return create(MechanismSchema, { name, state: MechanismState.OFF, detail: "no bound" });
    const { by, detail } = meansOf(key, found, engine);
    if (by !== undefined) {
      return create(MechanismSchema, {
        name,
        state: MechanismState.ENFORCED,
        by,
        detail: isGroup(by) ? "" : detail,
      });
    }
    if (requested[key] !== 0) {
      throw new CaissonError("NOT_ENFORCEABLE", `${name} cannot be enforced here: ${detail}`, {
        metadata: { mechanism: name },
      });
    }
    return create(MechanismSchema, { name, state: MechanismState.NOT_ENFORCED, detail });
  });
}
