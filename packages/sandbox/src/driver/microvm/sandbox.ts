import type { Duplex } from "node:stream";
import type { Mechanism } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper, Kept } from "../../keeper/index.ts";
import type { Attachment, Launched, LaunchRecord } from "../driver.ts";
import { describeEnd } from "./end.ts";
import { playerMemory } from "./sizes.ts";
import type { Shape } from "./template.ts";

export interface MachineParts<S extends Shape> {
  keeper: Keeper;
  sandboxId: string;
  /** Its directory on the host. */
  dir: string;
  kept: Kept;
  record: LaunchRecord;
  shape: S;
}

/** A machine as a sandbox; how it is spoken to is its kind's own. */
export abstract class MachineSandbox<S extends Shape> implements Launched {
  readonly record: LaunchRecord;
  readonly ended: Promise<string>;
  protected readonly machine: MachineParts<S>;

  constructor(machine: MachineParts<S>, vmm: string) {
    this.machine = machine;
    this.record = machine.record;
    this.ended = machine.kept.ended.then((how) => describeEnd(how, `${machine.dir}/launch.log`, vmm));
  }

  abstract connect(): Promise<Duplex>;
  abstract mechanisms(): Mechanism[];
  abstract pause(): Promise<void>;
  abstract resume(): Promise<void>;
  /** The machine must be paused. */
  abstract saveMachine(file: string, fleeting: boolean): Promise<void>;
  protected abstract bound(bytes: number): Promise<void>;

  kill(): Promise<void> {
    return this.machine.keeper.kill(this.machine.sandboxId);
  }

  attach(): Promise<Attachment[]> {
    throw new CaissonError("NOT_ENFORCEABLE", "a microVM shares no directory with the host");
  }

  async limitMemory(bytes: number): Promise<void> {
    // Its template was bounded before it was saved.
    if (bytes !== this.machine.shape.sandboxBytes) await this.bound(bytes);
  }

  get outerMemoryBytes(): number {
    return playerMemory(this.machine.shape.memoryBytes);
  }
}

/** What survives the daemon. The group of a machine with a uid of its own has the same number. */
export function recordOf(
  driver: string,
  { pid, startTime }: Kept,
  socket: string,
  uid: number,
): LaunchRecord {
  const gid = uid === process.getuid?.() ? (process.getgid?.() ?? uid) : uid;
  return { driver, pid, startTime: Number(startTime), uid, gid, socket };
}
