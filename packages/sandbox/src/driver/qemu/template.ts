import { open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { makeDisks } from "../microvm/disks.ts";
import { makeInitrd } from "../microvm/initrd.ts";
import { machineMemory, wordsOfSize } from "../microvm/sizes.ts";
import {
  findTemplate,
  type TemplateContext as MachineContext,
  type Template,
  type TemplateParts,
  versionsOf,
} from "../microvm/template.ts";
import { type MachineShape, machineArgv } from "./argv.ts";
import { hasHardware } from "./hardware.ts";
import { limitMachine, pingMachine, rehearse } from "./port.ts";
import type { Ground } from "./probe.ts";
import { saveDevices, stopMachine } from "./save.ts";
import { type Machine, startMachine } from "./start.ts";

export interface TemplateContext extends MachineContext {
  ground: Ground;
}

const kvmBootMs = 30_000;
const emulatedBootMs = 120_000;

export async function makeTemplate(context: TemplateContext): Promise<Template<MachineShape>> {
  const { ground, store, root } = context;
  const { programs, hostRoot, kernel } = ground;
  const [disks, initrd] = await Promise.all([
    makeDisks(programs, context),
    makeInitrd(kernel, context.guest, `${store}/images`),
  ]);
  const parts = { kernel: kernel.image, initrd, ...disks };
  const accel = (await hasHardware(context)) ? "kvm" : "tcg";
  const { size } = context;
  const sizes = { memoryBytes: machineMemory(size), sandboxBytes: size };
  const shape: MachineShape = { ...sizes, accel, tscKhz: ground.tscKhz };
  // Another kernel, guest, image, QEMU or command line makes a saved machine stale.
  const argv = machineArgv(programs, hostRoot, shape, { kind: "boot", memory: "file" }, Object.keys(disks));
  const identity = [await versionsOf([programs.qemu, parts.kernel]), argv];
  const boot = {
    words: `booting a microVM ${wordsOfSize(size)} once (${accel === "kvm" ? "hardware virtualisation" : "emulation"})`,
    vmm: "QEMU",
    start: (sandboxId: string, dir: string, uid?: number) =>
      start(context, { sandboxId, dir, parts, shape, ...(uid === undefined ? {} : { uid }) }),
    ready: ({ control }: Machine) =>
      ready(control, { withinMs: accel === "kvm" ? kvmBootMs : emulatedBootMs, size, hasShell: !root }),
    async save({ monitor }: Machine, dir: string) {
      await stopMachine(monitor);
      await saveDevices(context.keeper, monitor, `${dir}/state`);
    },
  };
  return findTemplate(context, { folder: "templates", parts, shape, identity }, boot);
}

async function start(
  context: TemplateContext,
  spec: { sandboxId: string; dir: string; parts: TemplateParts; shape: MachineShape; uid?: number },
): Promise<Machine> {
  const { parts, shape, ...place } = spec;
  const memory = `${spec.dir}/memory`;
  await using file = await open(memory, "w", 0o600);
  await file.truncate(shape.memoryBytes);
  return await startMachine(context, {
    ...place,
    cgroups: [],
    template: { ...parts, shape, memory, state: "" },
    start: { kind: "boot", memory: "file" },
  });
}

/** The port can be connected to before there is anybody behind it: what is said then waits there. */
async function ready(
  control: string,
  { withinMs, size, hasShell }: { withinMs: number; size: number; hasShell: boolean },
): Promise<void> {
  await pingMachine(control, withinMs);
  await limitMachine(control, size);
  const rehearsed = rehearse(control, withinMs);
  // An image need not have a shell; what was rehearsed up to there is of use.
  await (hasShell ? rehearsed : rehearsed.catch(() => {}));
  // Everything that its first steps left to do in the background is done when it is copied.
  await sleep(300);
}
