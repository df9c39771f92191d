import { CaissonError } from "@caisson/contract/errors";
import { type Cgroup, type CgroupUsage, pidsMax } from "../../limits/cgroup/cgroup.ts";
import { cgroupOf } from "../../limits/cgroup/of-process.ts";
import type { LimitValues } from "../../limits/index.ts";
import type { Engine } from "./api.ts";

/** What the engine is told to bound a container to. */
export function engineBounds(limits: LimitValues) {
  const { memoryBytes, cpuMillis } = limits;
  const pids = pidsMax(limits);
  return {
    Memory: memoryBytes || unlimited,
    // With swap: no more than without.
    MemorySwap: memoryBytes || unlimited,
    PidsLimit: pids === "max" ? unlimited : pids,
    ...(cpuMillis ? { NanoCpus: cpuMillis * 1_000_000 } : {}),
  };
}

const unlimited = -1;

/** A container's control group: bounded by its engine, looked at by us. */
export class EngineGroup implements Cgroup {
  readonly procs = [];
  readonly #engine: Engine;
  readonly #container: string;
  readonly #group: Cgroup;

  private constructor(engine: Engine, container: string, group: Cgroup) {
    this.#engine = engine;
    this.#container = container;
    this.#group = group;
  }

  /** Undefined where the group of the container's first process cannot be looked at. */
  static find(engine: Engine, container: string, pid: number): EngineGroup | undefined {
    const group = cgroupOf(pid);
    return group && new EngineGroup(engine, container, group);
  }

  async configure(limits: LimitValues): Promise<void> {
    const path = `/containers/${this.#container}/update`;
    const call = { method: "POST" as const, path, body: engineBounds(limits), accept: [404, 405] };
    const { status } = await this.#engine.call(call);
    // Podman has no such call before its version 5. Whoever may write the group does what it would.
    if (status === 404 || status === 405) this.#group.configure(limits);
    if (!this.holds(limits))
      throw new CaissonError("NOT_ENFORCEABLE", "the container engine does not bound memory and processes");
  }

  /** Is the group bounded as it should be? */
  holds(limits: LimitValues): boolean {
    const bounds = this.#group.bounds();
    return bounds.memoryBytes === limits.memoryBytes && bounds.pids === pidsMax(limits);
  }

  bounds() {
    return this.#group.bounds();
  }

  oomKills(): number {
    return this.#group.oomKills();
  }

  usage(): CgroupUsage {
    return this.#group.usage();
  }

  /** It goes with its container. */
  async remove(): Promise<void> {}
}
