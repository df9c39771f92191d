import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import type { Keeper } from "../../keeper/index.ts";
import type { Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { keepNote, memoryOf, notedShape, noteMachine } from "../microvm/description.ts";
import { type MachineParts, MachineSandbox, recordOf } from "../microvm/sandbox.ts";
import { disksOf, type Template } from "../microvm/template.ts";
import { Api } from "./api.ts";
import { apiSocket, type MachineShape } from "./argv.ts";
import { firecrackerMechanisms } from "./mechanisms.ts";
import type { Programs } from "./probe.ts";
import { keepMachine } from "./save.ts";
import { startMachine } from "./start.ts";
import { connectLink, limitMachine, setClock } from "./vsock.ts";

export interface LaunchContext {
  keeper: Keeper;
  guest: string;
  programs: Programs;
}

/** Starts a copy of a machine that was saved. */
export async function launchFirecracker(
  context: LaunchContext,
  template: Template<MachineShape>,
  spec: LaunchSpec,
  uid: number,
): Promise<Launched> {
  const { sandboxId, dir, cgroups } = spec;
  const { shape, state, memory } = template;
  await noteMachine(dir, template);
  const { kept, door } = await startMachine(context, {
    ...{ sandboxId, dir, cgroups, uid, shape },
    start: { kind: "load", ...disksOf(template), state, memory },
  });
  const record = recordOf("firecracker", kept, door.socket, uid);
  return new FirecrackerSandbox({ keeper: context.keeper, sandboxId, dir, kept, record, shape });
}

/** Finds a machine again by its record. */
export async function adoptFirecracker(
  keeper: Keeper,
  sandboxId: string,
  record: LaunchRecord,
): Promise<Launched | undefined> {
  const kept = await keeper.adopt(sandboxId, { pid: record.pid, startTime: BigInt(record.startTime) });
  if (!kept) return undefined;
  // …/jail/PROGRAM/ID/root/SOCKET
  const dir = record.socket.split("/").slice(0, -5).join("/");
  const shape = await notedShape<MachineShape>(dir);
  return new FirecrackerSandbox({ keeper, sandboxId, dir, kept, record, shape });
}

class FirecrackerSandbox extends MachineSandbox<MachineShape> {
  constructor(machine: MachineParts<MachineShape>) {
    super(machine, "Firecracker");
  }

  connect(): Promise<Duplex> {
    return connectLink(this.record);
  }

  mechanisms() {
    return firecrackerMechanisms(this.machine.shape);
  }

  async pause(): Promise<void> {
    await this.#api.patch("/vm", { state: "Paused" });
  }

  /** Its clock stood still too, and is set while it goes on: whoever made a copy does not wait for the original. */
  async resume(): Promise<void> {
    await this.#api.patch("/vm", { state: "Resumed" });
    setClock(this.record).catch(() => {});
  }

  async saveMachine(file: string): Promise<void> {
    await keepNote(this.machine.dir, file);
    const machine = { api: this.#api, root: dirname(this.record.socket) };
    await keepMachine(machine, { state: file, memory: memoryOf(file) });
  }

  protected bound(bytes: number): Promise<void> {
    return limitMachine(this.record, bytes);
  }

  get #api(): Api {
    return new Api(`${dirname(this.record.socket)}/${apiSocket}`, this.record.uid);
  }
}
