import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { launchedProcess } from "../keeper/index.ts";
import { removeAllButKept } from "./clean-up.ts";
import type { EngineContext } from "./context.ts";
import { endedRecord } from "./find.ts";
import { isSandboxId } from "./ids.ts";
import { kinds, type SandboxRecord } from "./records.ts";

/** Removes what an earlier daemon left and nothing refers to: directories, control groups, and what still runs in them. */
export class Janitor {
  readonly #context: EngineContext;
  readonly #places: string[];
  readonly #groups: string[];

  /** Looks at once, before anything new is made. */
  constructor(context: EngineContext) {
    this.#context = context;
    this.#places = readdirSync(context.sandboxesDir).filter(isSandboxId);
    this.#groups = context.cgroups.cgroups?.list().filter(isSandboxId) ?? [];
  }

  async clean(): Promise<void> {
    const context = this.#context;
    const living = new Set([...context.boxes.values()].map((box) => box.record.place));
    const ended = new Set<string>();
    for (const [, record] of context.store.scan<SandboxRecord>(kinds.ended)) ended.add(record.place);
    for (const place of this.#places) {
      if (living.has(place)) continue;
      await this.#try(place, () =>
        this.#cleanPlace(place, ended.has(place) || endedRecord(context, place) !== undefined),
      );
    }
    for (const driver of context.parts.drivers) {
      await this.#try(driver.name, async () => driver.sweep?.(living));
    }
    await this.#try("closed machines", () => context.closedMachines.forget());
    for (const group of this.#groups) {
      if (!living.has(group)) await this.#try(group, () => this.#cleanGroup(group));
    }
  }

  async #cleanPlace(place: string, ended: boolean): Promise<void> {
    const context = this.#context;
    const dir = context.dirOf(place);
    await this.#killLeftover(place, dir);
    if (ended) return removeAllButKept(context, dir);
    context.log("info", "a directory that belongs to no sandbox is removed", { place });
    await context.parts.trees.remove(dir);
  }

  /** Its launch log names the process; a number that was given to another one since is recognised. */
  async #killLeftover(place: string, dir: string): Promise<void> {
    const left = await launchedProcess(join(dir, "launch.log"));
    if (!left) return;
    const record = {
      pid: left.pid,
      startTime: Number(left.startTime),
      uid: 0,
      gid: 0,
      socket: join(dir, "link.sock"),
    };
    for (const driver of this.#context.parts.drivers) {
      const launched = await driver.adopt(place, { ...record, driver: driver.name });
      await launched?.kill();
    }
  }

  async #cleanGroup(group: string): Promise<void> {
    const cgroup = this.#context.cgroups.cgroups!.find(group);
    for (const file of cgroup.procs) for (const pid of membersOf(file)) process.kill(pid, "SIGKILL");
    await cgroup.remove();
  }

  async #try(place: string, action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.#context.log("warn", "something could not be cleaned up", { place, error: String(error) });
    }
  }
}

function membersOf(procs: string): number[] {
  try {
    return readFileSync(procs, "utf8").split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
