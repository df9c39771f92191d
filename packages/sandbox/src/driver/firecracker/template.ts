import { hash, randomUUID } from "node:crypto";
import { mkdir, rm, stat } from "node:fs/promises";
import { cpus, release } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "@caisson/contract/errors";
import { describeEnd } from "../microvm/end.ts";
import { makeHostImage, type Progress } from "../microvm/host-image.ts";
import { makeInitrd } from "../microvm/initrd.ts";
import { buildingPlace, keepTemplate } from "../microvm/keep-template.ts";
import { makeVmlinux } from "../microvm/vmlinux.ts";
import type { MachineShape } from "./argv.ts";
import type { BootContext } from "./boots.ts";
import type { Ground } from "./probe.ts";
import { keepMachine } from "./save.ts";
import { startMachine } from "./start.ts";
import { pingMachine } from "./vsock.ts";

/** A machine that was booted once and saved where its guest waits, unsealed: every sandbox begins as a copy of it. */
export interface Template {
  shape: MachineShape;
  kernel: string;
  initrd: string;
  image: string;
  memory: string;
  state: string;
}

export interface TemplateContext extends BootContext {
  ground: Ground;
  memoryBytes: number;
  progress: Progress;
}

const bootMs = 60_000;

/** What is on disk if it still fits this host, else a new one. */
export async function makeTemplate(context: TemplateContext): Promise<Template> {
  const { ground, store } = context;
  const images = `${store}/images`;
  const [image, initrd, kernel] = await Promise.all([
    makeHostImage(ground.programs, images, context.progress),
    makeInitrd(ground.kernel, context.guest, images),
    makeVmlinux(ground.kernel.image, images),
  ]);
  const shape = { memoryBytes: context.memoryBytes };
  const parts = { kernel, initrd, image };
  const directory = `${store}/firecracker/${await keyOf(parts, shape, ground)}`;
  const template = { ...parts, shape, memory: `${directory}/memory`, state: `${directory}/state` };
  if (await stat(template.state).catch(() => undefined)) return template;
  await boot(context, template, directory);
  return template;
}

/** Everything that a saved machine depends on, the host's processor and kernel included. */
async function keyOf(parts: object, shape: MachineShape, { programs, kernel }: Ground): Promise<string> {
  const versions = await Promise.all(
    [programs.firecracker, kernel.image].map(async (path) => {
      const { mtimeMs, size } = await stat(path);
      return [path, mtimeMs, size];
    }),
  );
  const host = [release(), cpus()[0]?.model];
  return hash("sha256", JSON.stringify([parts, shape, versions, host])).slice(0, 32);
}

async function boot(context: TemplateContext, template: Template, directory: string): Promise<void> {
  context.progress("booting a microVM once (hardware virtualisation)");
  const building = buildingPlace(directory);
  await rm(building, { recursive: true, force: true });
  await mkdir(building, { recursive: true, mode: 0o700 });
  const uid = await context.takeUid();
  try {
    const { kernel, initrd, image, shape } = template;
    const machine = await startMachine(context, {
      sandboxId: `template-${randomUUID()}`,
      dir: building,
      cgroups: [],
      uid,
      shape,
      start: { kind: "boot", kernel, initrd, image },
    });
    try {
      const ended = machine.kept.ended.then(async (how): Promise<never> => {
        const words = await describeEnd(how, `${building}/launch.log`, "Firecracker");
        throw new CaissonError("SANDBOX_FAILED", `the machine ended while it booted: ${words}`);
      });
      ended.catch(() => {});
      await Promise.race([ready(machine.door), ended]);
      await machine.api.patch("/vm", { state: "Paused" });
      await keepMachine(machine, { state: `${building}/state`, memory: `${building}/memory` });
    } finally {
      await context.keeper.kill(machine.sandboxId);
    }
  } finally {
    context.releaseUid(uid);
  }
  await rm(`${building}/jail`, { recursive: true, force: true });
  await keepTemplate(directory);
}

/** Until the guest listens there is nobody behind the socket. */
async function ready(door: { socket: string; uid: number }): Promise<void> {
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
  // Everything that its first steps left to do in the background is done when it is copied.
  await sleep(300);
}
