import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { LimitValues } from "../values.ts";
import { type Cgroup, type Cgroups, type CgroupUsage, pidsMax } from "./cgroup.ts";
import {
  listDirectories,
  readField,
  readNumber,
  readPids,
  removeGroup,
  removeIfEmpty,
  writeValue,
} from "./files.ts";

export const controllers = ["memory", "pids", "cpu"] as const;
export type Controller = (typeof controllers)[number];

const periodUs = 100_000;
const unlimited = -1;
/** What the kernel shows for none is a number near the greatest. */
const noBound = 2 ** 62;

/** One hierarchy per controller; `bases` are our own directories in those that can be written. */
export class CgroupsV1 implements Cgroups {
  readonly by = "cgroup v1";
  readonly controls: Cgroups["controls"];
  readonly #bases: ReadonlyMap<Controller, string>;

  constructor(bases: ReadonlyMap<Controller, string>) {
    this.#bases = bases;
    this.controls = { memory: bases.has("memory"), pids: bases.has("pids"), cpu: bases.has("cpu") };
  }

  /** Undefined when neither memory nor processes can be bounded. */
  static open(mounts: ReadonlyMap<string, string>, name: string): CgroupsV1 | undefined {
    const bases = new Map<Controller, string>();
    for (const controller of controllers) {
      const mount = mounts.get(controller);
      if (mount === undefined) continue;
      try {
        const base = join(mount, "caisson", name);
        mkdirSync(base, { recursive: true });
        bases.set(controller, base);
      } catch {
        // Not ours to write.
      }
    }
    return bases.has("memory") || bases.has("pids") ? new CgroupsV1(bases) : undefined;
  }

  make(id: string): Cgroup {
    for (const base of this.#bases.values()) mkdirSync(join(base, id), { recursive: true });
    return this.find(id);
  }

  find(id: string): Cgroup {
    return new CgroupV1(new Map([...this.#bases].map(([controller, base]) => [controller, join(base, id)])));
  }

  list(): string[] {
    return [...new Set([...this.#bases.values()].flatMap(listDirectories))];
  }

  close(): void {
    for (const base of this.#bases.values()) removeIfEmpty(base);
  }
}

/** A group by its directory in each hierarchy. */
export class CgroupV1 implements Cgroup {
  readonly procs: readonly string[];
  readonly #paths: ReadonlyMap<Controller, string>;

  constructor(paths: ReadonlyMap<Controller, string>) {
    this.#paths = paths;
    this.procs = [...paths.values()].map((path) => join(path, "cgroup.procs"));
  }

  configure(limits: LimitValues): void {
    const memory = this.#paths.get("memory");
    if (memory) {
      const bytes = limits.memoryBytes || unlimited;
      const swap = join(memory, "memory.memsw.limit_in_bytes");
      // The bound with swap can never be the smaller one: lift it, set memory, then lower it again.
      if (existsSync(swap)) writeValue(swap, unlimited);
      writeValue(join(memory, "memory.limit_in_bytes"), bytes);
      if (existsSync(swap)) writeValue(swap, bytes);
    }
    const pids = this.#paths.get("pids");
    if (pids) writeValue(join(pids, "pids.max"), pidsMax(limits));
    const cpu = this.#paths.get("cpu");
    if (cpu && limits.cpuMillis) {
      writeValue(join(cpu, "cpu.cfs_period_us"), periodUs);
      writeValue(join(cpu, "cpu.cfs_quota_us"), Math.ceil((limits.cpuMillis * periodUs) / 1000));
    }
  }

  bounds() {
    const memory = this.#paths.get("memory");
    const bytes = memory ? readNumber(join(memory, "memory.limit_in_bytes")) : 0;
    const pids = this.#paths.get("pids");
    return {
      memoryBytes: bytes >= noBound ? 0 : bytes,
      pids: pids ? readPids(join(pids, "pids.max")) : ("max" as const),
    };
  }

  oomKills(): number {
    const memory = this.#paths.get("memory");
    return memory ? readField(join(memory, "memory.oom_control"), "oom_kill") : 0;
  }

  usage(): CgroupUsage {
    const memory = this.#paths.get("memory");
    const pids = this.#paths.get("pids");
    return {
      memoryBytes: memory ? usedBytes(memory) : 0,
      memoryPeakBytes: memory ? readNumber(join(memory, "memory.max_usage_in_bytes")) : 0,
      pids: pids ? readNumber(join(pids, "pids.current")) : 0,
      cpuUs: undefined,
    };
  }

  async remove(): Promise<void> {
    await Promise.all([...this.#paths.values()].map(removeGroup));
  }
}

/** Without file cache that the kernel would drop at once. */
function usedBytes(memory: string): number {
  const cache = readField(join(memory, "memory.stat"), "total_inactive_file");
  return Math.max(0, readNumber(join(memory, "memory.usage_in_bytes")) - cache);
}
