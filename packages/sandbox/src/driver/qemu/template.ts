import { hash, randomUUID } from "node:crypto";
import { mkdir, open, rm, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { describeEnd } from "../microvm/end.ts";
import { makeHostImage, type Progress } from "../microvm/host-image.ts";
import { makeInitrd } from "../microvm/initrd.ts";
import { buildingPlace, keepTemplate } from "../microvm/keep-template.ts";
import { type MachineShape, machineArgv } from "./argv.ts";
import { hasHardware } from "./hardware.ts";
import { Monitor } from "./monitor.ts";
import { pingMachine, rehearse } from "./port.ts";
import type { Ground } from "./probe.ts";
import { saveMachine } from "./save.ts";
import { startMachine } from "./start.ts";

/** A machine that was booted once and saved where its guest waits, unsealed: every sandbox begins as a copy of it. */
export interface Template {
  shape: MachineShape;
  kernel: string;
  initrd: string;
  image: string;
  memory: string;
  state: string;
}

export interface TemplateContext {
  keeper: Keeper;
  guest: string;
  ground: Ground;
  /** A directory of the daemon's alone. */
  store: string;
  memoryBytes: number;
  takeUid(): Promise<number | undefined>;
  releaseUid(uid: number): void;
  progress: Progress;
}

const kvmBootMs = 30_000;
const emulatedBootMs = 120_000;
const saveMs = 60_000;

/** What is on disk if it still fits this host, else a new one. */
export async function makeTemplate(context: TemplateContext): Promise<Template> {
  const { ground, store } = context;
  const [image, initrd] = await Promise.all([
    makeHostImage(ground.programs, `${store}/images`, context.progress),
    makeInitrd(ground.kernel, context.guest, `${store}/images`),
  ]);
  const parts = { kernel: ground.kernel.image, initrd, image };
  const accel = (await hasHardware(context)) ? "kvm" : "tcg";
  const shape: MachineShape = { memoryBytes: context.memoryBytes, accel, tscKhz: ground.tscKhz };
  const directory = `${store}/templates/${await keyOf(parts, shape, ground)}`;
  const template = { ...parts, shape, memory: `${directory}/memory`, state: `${directory}/state` };
  if (await stat(template.state).catch(() => undefined)) return template;
  await boot(context, template, directory);
  return template;
}

/** Everything that a saved machine depends on; another kernel, guest, image, QEMU or command line makes it stale. */
async function keyOf(
  parts: { kernel: string; initrd: string; image: string },
  shape: MachineShape,
  ground: Ground,
): Promise<string> {
  const { programs, hostRoot } = ground;
  const argv = machineArgv(programs, hostRoot, shape, { kind: "boot", memory: "file" });
  const versions = await Promise.all(
    [programs.qemu, parts.kernel].map(async (path) => {
      const { mtimeMs, size } = await stat(path);
      return [path, mtimeMs, size];
    }),
  );
  return hash("sha256", JSON.stringify([parts, shape, versions, argv])).slice(0, 32);
}

async function boot(context: TemplateContext, template: Template, directory: string): Promise<void> {
  const { accel, memoryBytes } = template.shape;
  context.progress(`booting a microVM once (${accel === "kvm" ? "hardware virtualisation" : "emulation"})`);
  const building = buildingPlace(directory);
  await rm(building, { recursive: true, force: true });
  await mkdir(building, { recursive: true, mode: 0o700 });
  await using memory = await open(`${building}/memory`, "w", 0o600);
  await memory.truncate(memoryBytes);
  const uid = await context.takeUid();
  try {
    const machine = await startMachine(context, {
      sandboxId: `template-${randomUUID()}`,
      dir: building,
      cgroups: [],
      template: { ...template, memory: `${building}/memory` },
      start: { kind: "boot", memory: "file" },
      ...(uid === undefined ? {} : { uid }),
    });
    const ended = machine.kept.ended.then(async (how): Promise<never> => {
      const words = await describeEnd(how, machine.data);
      throw new CaissonError("SANDBOX_FAILED", `the machine ended while it booted: ${words}`);
    });
    ended.catch(() => {});
    try {
      const booted = ready(machine.control, accel === "kvm" ? kvmBootMs : emulatedBootMs);
      // A port that is closed tells less than why.
      await Promise.race([
        booted.catch(async (error) => {
          await Promise.race([ended, sleep(500)]);
          throw error;
        }),
        ended,
      ]);
      using monitor = await Monitor.open(machine.monitor);
      await monitor.execute("stop");
      monitor.close();
      await saveMachine(context.keeper, machine.monitor, `${building}/state`, saveMs);
    } finally {
      await context.keeper.kill(machine.sandboxId);
    }
  } finally {
    if (uid !== undefined) context.releaseUid(uid);
  }
  await keepTemplate(directory);
}

/** The port can be connected to before there is anybody behind it: what is said then waits there. */
async function ready(control: string, withinMs: number): Promise<void> {
  await pingMachine(control, withinMs);
  await rehearse(control, withinMs);
  // Everything that its first steps left to do in the background is done when it is copied.
  await sleep(300);
}
