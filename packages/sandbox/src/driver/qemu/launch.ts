import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import type { Keeper } from "../../keeper/index.ts";
import type { Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { keepNote, memoryOf, notedShape, noteMachine } from "../microvm/description.ts";
import { type MachineParts, MachineSandbox, recordOf } from "../microvm/sandbox.ts";
import type { Template } from "../microvm/template.ts";
import type { MachineShape } from "./argv.ts";
import { qemuMechanisms } from "./mechanisms.ts";
import { connectPort, limitMachine, parkMachine, rehearse, setClock, wakePort } from "./port.ts";
import type { Ground } from "./probe.ts";
import { continueMachine, saveDevices, stopMachine } from "./save.ts";
import { machineSockets, startMachine } from "./start.ts";

const rehearsalMs = 60_000;
const parkingMs = 30_000;

export interface LaunchContext {
  keeper: Keeper;
  guest: string;
  ground: Ground;
}

/** Starts a copy of a machine that was saved. */
export async function launchQemu(
  context: LaunchContext,
  template: Template<MachineShape>,
  spec: LaunchSpec,
  uid?: number,
): Promise<Launched> {
  const { sandboxId, dir, cgroups } = spec;
  await noteMachine(dir, template);
  const { kept, data } = await startMachine(context, {
    ...{ sandboxId, dir, cgroups, template },
    start: { kind: "saved" },
    ...(uid === undefined ? {} : { uid }),
  });
  const record = recordOf("qemu", kept, data, uid ?? context.ground.uid);
  const parts = { keeper: context.keeper, sandboxId, dir, kept, record, shape: template.shape };
  return new QemuSandbox(parts, uid !== undefined, spec.wakeAs);
}

/** Finds a machine again by its record. */
export async function adoptQemu(
  keeper: Keeper,
  sandboxId: string,
  record: LaunchRecord,
): Promise<Launched | undefined> {
  const kept = await keeper.adopt(sandboxId, { pid: record.pid, startTime: BigInt(record.startTime) });
  if (!kept) return undefined;
  const dir = dirname(record.socket);
  const shape = await notedShape<MachineShape>(dir);
  const hasOwnUid = record.uid !== (await keeper.identity()).uid;
  return new QemuSandbox({ keeper, sandboxId, dir, kept, record, shape }, hasOwnUid);
}

class QemuSandbox extends MachineSandbox<MachineShape> {
  readonly #hasOwnUid: boolean;
  /** The name that a copy of a parked machine gets when it is first spoken to. */
  #wakeAs: string | undefined;

  constructor(machine: MachineParts<MachineShape>, hasOwnUid: boolean, wakeAs?: string) {
    super(machine, "QEMU");
    this.#hasOwnUid = hasOwnUid;
    this.#wakeAs = wakeAs;
  }

  connect(): Promise<Duplex> {
    const name = this.#wakeAs;
    this.#wakeAs = undefined;
    return name === undefined ? connectPort(this.#sockets) : wakePort(this.#sockets, name);
  }

  park(): Promise<void> {
    return parkMachine(this.#sockets.control, parkingMs);
  }

  mechanisms() {
    return qemuMechanisms(this.machine.shape, this.#hasOwnUid);
  }

  /** Hardware has nothing to translate first. */
  async rehearse(): Promise<void> {
    if (this.machine.shape.accel === "tcg") await rehearse(this.#sockets.control, rehearsalMs);
  }

  pause(): Promise<void> {
    return stopMachine(this.#sockets.monitor);
  }

  /** Its clock stood still too, and is set while it goes on: whoever made a copy does not wait for the original. */
  async resume(): Promise<void> {
    await continueMachine(this.#sockets.monitor);
    setClock(this.#sockets.control).catch(() => {});
  }

  async saveMachine(file: string, fleeting: boolean): Promise<void> {
    const { keeper, sandboxId, dir, shape } = this.machine;
    await Promise.all([
      keepNote(dir, file),
      saveDevices(keeper, this.#sockets.monitor, file),
      keeper.keepMemory(sandboxId, memoryOf(file), { size: shape.memoryBytes, held: fleeting }),
    ]);
  }

  protected bound(bytes: number): Promise<void> {
    return limitMachine(this.#sockets.control, bytes);
  }

  get #sockets() {
    return machineSockets(this.machine.dir);
  }
}
