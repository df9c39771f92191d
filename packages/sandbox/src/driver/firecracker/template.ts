import { rm } from "node:fs/promises";
import { cpus, release } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { makeDisks } from "../microvm/disks.ts";
import { makeInitrd } from "../microvm/initrd.ts";
import { machineMemory, wordsOfSize } from "../microvm/sizes.ts";
import {
  findTemplate,
  type TemplateContext as MachineContext,
  type Template,
  versionsOf,
} from "../microvm/template.ts";
import { makeVmlinux } from "../microvm/vmlinux.ts";
import type { MachineShape } from "./argv.ts";
import type { Ground } from "./probe.ts";
import { keepMachine } from "./save.ts";
import { type Machine, startMachine } from "./start.ts";
import { type Door, limitMachine, pingMachine } from "./vsock.ts";

export interface TemplateContext extends MachineContext {
  ground: Ground;
}

const bootMs = 60_000;

export async function makeTemplate(context: TemplateContext): Promise<Template<MachineShape>> {
  const { ground, store } = context;
  const { programs } = ground;
  const images = `${store}/images`;
  const [disks, initrd, kernel] = await Promise.all([
    makeDisks(programs, context),
    makeInitrd(ground.kernel, context.guest, images),
    makeVmlinux(ground.kernel.image, images),
  ]);
  const { size } = context;
  const shape = { memoryBytes: machineMemory(size), sandboxBytes: size };
  const parts = { kernel, initrd, ...disks };
  // The host's processor and kernel count too.
  const versions = await versionsOf([programs.firecracker, ground.kernel.image]);
  const identity = [versions, release(), cpus()[0]?.model];
  const boot = {
    words: `booting a microVM ${wordsOfSize(size)} once (hardware virtualisation)`,
    vmm: "Firecracker",
    start: (sandboxId: string, dir: string, uid = 0) =>
      startMachine(
        { ...context, programs },
        { sandboxId, dir, cgroups: [], uid, shape, start: { kind: "boot", ...parts } },
      ),
    ready: ({ door }: Machine) => ready(door, size),
    async save(machine: Machine, dir: string) {
      await machine.api.patch("/vm", { state: "Paused" });
      await keepMachine(machine, { state: `${dir}/state`, memory: `${dir}/memory` });
    },
    clear: (dir: string) => rm(`${dir}/jail`, { recursive: true, force: true }),
  };
  return findTemplate(context, { folder: "firecracker", parts, shape, identity }, boot);
}

/** Until the guest listens there is nobody behind the socket. */
async function ready(door: Door, size: number): Promise<void> {
  const signal = AbortSignal.timeout(bootMs);
  for (;;) {
    try {
      await pingMachine(door, signal);
      break;
    } catch (error) {
      if (signal.aborted) throw error;
      await sleep(10);
    }
  }
  await limitMachine(door, size);
  // Everything that its first steps left to do in the background is done when it is copied.
  await sleep(300);
}
