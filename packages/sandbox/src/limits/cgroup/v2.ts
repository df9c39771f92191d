import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { LimitValues } from "../values.ts";
import { type Cgroup, type Cgroups, type CgroupUsage, pidsMax } from "./cgroup.ts";
import {
  canWrite,
  listDirectories,
  readField,
  readNumber,
  readPids,
  readText,
  removeGroup,
  removeIfEmpty,
  writeValue,
} from "./files.ts";

const periodUs = 100_000;
const wanted = ["memory", "pids", "cpu"] as const;

/** The one hierarchy, below the highest group that is delegated to this user. */
export class CgroupsV2 implements Cgroups {
  readonly by = "cgroup v2";
  readonly controls: Cgroups["controls"];
  readonly #base: string;

  constructor(base: string, controllers: readonly string[]) {
    this.#base = base;
    const has = (name: string) => controllers.includes(name);
    this.controls = { memory: has("memory"), pids: has("pids"), cpu: has("cpu") };
  }

  /** `own` is the daemon's own group. Undefined when neither memory nor processes can be bounded. */
  static open(mount: string, own: string, name: string): CgroupsV2 | undefined {
    for (const parent of delegated(mount, join(mount, own))) {
      try {
        enable(parent);
        const ours = join(parent, "caisson");
        mkdirSync(ours, { recursive: true });
        enable(ours);
        const base = join(ours, name);
        mkdirSync(base, { recursive: true });
        const enabled = enable(base);
        if (enabled.includes("memory") || enabled.includes("pids")) return new CgroupsV2(base, enabled);
      } catch {
        // Not delegated after all: a lower one may be.
      }
    }
    return undefined;
  }

  make(id: string): Cgroup {
    mkdirSync(join(this.#base, id), { recursive: true });
    return this.find(id);
  }

  find(id: string): Cgroup {
    return new CgroupV2(join(this.#base, id));
  }

  list(): string[] {
    return listDirectories(this.#base);
  }

  close(): void {
    removeIfEmpty(this.#base);
  }
}

/** Groups from the highest that this user may write to down to the daemon's own. */
function delegated(mount: string, own: string): string[] {
  const found: string[] = [];
  for (let path = own; path.startsWith(mount); path = dirname(path)) {
    if (isWritable(path)) found.unshift(path);
    if (path === mount) break;
  }
  return found;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    accessSync(join(path, "cgroup.procs"), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Passes the controllers on to the groups below; returns those that are. */
function enable(path: string): string[] {
  const control = join(path, "cgroup.subtree_control");
  for (const name of wanted) canWrite(control, `+${name}`);
  return readText(control).trim().split(" ");
}

/** A group by its directory. */
export class CgroupV2 implements Cgroup {
  readonly procs: readonly string[];
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
    this.procs = [join(path, "cgroup.procs")];
  }

  configure(limits: LimitValues): void {
    this.#set("memory.max", limits.memoryBytes || "max");
    this.#set("memory.swap.max", limits.memoryBytes ? 0 : "max");
    this.#set("pids.max", pidsMax(limits));
    const quota = limits.cpuMillis ? Math.ceil((limits.cpuMillis * periodUs) / 1000) : "max";
    this.#set("cpu.max", `${quota} ${periodUs}`);
  }

  bounds() {
    // `max` is no number.
    return {
      memoryBytes: readNumber(join(this.#path, "memory.max")),
      pids: readPids(join(this.#path, "pids.max")),
    };
  }

  oomKills(): number {
    return readField(join(this.#path, "memory.events"), "oom_kill");
  }

  usage(): CgroupUsage {
    const cache = readField(join(this.#path, "memory.stat"), "inactive_file");
    const current = readNumber(join(this.#path, "memory.current"));
    return {
      memoryBytes: Math.max(0, current - cache),
      memoryPeakBytes: readNumber(join(this.#path, "memory.peak")),
      pids: readNumber(join(this.#path, "pids.current")),
      cpuUs: readField(join(this.#path, "cpu.stat"), "usage_usec"),
    };
  }

  async remove(): Promise<void> {
    await removeGroup(this.#path);
  }

  #set(file: string, value: number | string): void {
    const path = join(this.#path, file);
    if (existsSync(path)) writeValue(path, value);
  }
}
