import { hash, randomUUID } from "node:crypto";
import {
  access,
  constants,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { describeEnd } from "../microvm/end.ts";
import { makeHostImage, type Progress } from "../microvm/host-image.ts";
import { makeInitrd } from "../microvm/initrd.ts";
import type { MachineShape } from "./argv.ts";
import { Monitor } from "./monitor.ts";
import { pingMachine } from "./port.ts";
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

/** Hardware virtualisation that works boots within a second; where it hangs, it hangs at once. */
const kvmBootMs = 10_000;
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
  for (const accel of await accelerators(store)) {
    const shape: MachineShape = { memoryBytes: context.memoryBytes, accel, tscKhz: ground.tscKhz };
    const directory = `${store}/templates/${await keyOf(parts, shape, ground)}`;
    const template = { ...parts, shape, memory: `${directory}/memory`, state: `${directory}/state` };
    if (await stat(template.state).catch(() => undefined)) return template;
    try {
      await boot(context, template, directory);
      await removeOthers(`${store}/templates`, directory);
      return template;
    } catch (error) {
      if (accel === "tcg") throw error;
      // Remembered until the host boots again: trying costs seconds.
      await writeFile(`${store}/kvm-does-not-boot`, await bootId());
      context.progress("hardware virtualisation does not boot a machine here; going on with emulation");
    }
  }
  throw new CaissonError("NO_DRIVER", "no machine boots here");
}

/** /dev/kvm can be there and not run a guest: only a boot tells. */
async function accelerators(store: string): Promise<("kvm" | "tcg")[]> {
  const usable = await access("/dev/kvm", constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  const failed = await readFile(`${store}/kvm-does-not-boot`, "utf8").catch(() => "");
  return usable && failed !== (await bootId()) ? ["kvm", "tcg"] : ["tcg"];
}

async function bootId(): Promise<string> {
  return await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "unknown");
}

/** Everything that a saved machine depends on; another kernel, guest, image or QEMU makes it stale. */
async function keyOf(
  parts: { kernel: string; initrd: string; image: string },
  shape: MachineShape,
  ground: Ground,
): Promise<string> {
  const versions = await Promise.all(
    [ground.programs.qemu, parts.kernel].map(async (path) => {
      const { mtimeMs, size } = await stat(path);
      return [path, mtimeMs, size];
    }),
  );
  return hash("sha256", JSON.stringify([parts, shape, versions])).slice(0, 32);
}

async function boot(context: TemplateContext, template: Template, directory: string): Promise<void> {
  const { accel, memoryBytes } = template.shape;
  context.progress(`booting a microVM once (${accel === "kvm" ? "hardware virtualisation" : "emulation"})`);
  const building = `${directory}.${process.pid}`;
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
  await rm(directory, { recursive: true, force: true });
  await rename(building, directory);
}

/** The port can be connected to before there is anybody behind it: what is said then waits there. */
async function ready(control: string, withinMs: number): Promise<void> {
  await pingMachine(control, withinMs);
  // Everything that its first steps left to do in the background is done when it is copied.
  await sleep(300);
}

/** Templates of an older host or build; machines that were copied from one do not need it any more. */
async function removeOthers(templates: string, directory: string): Promise<void> {
  for (const name of await readdir(templates)) {
    const other = `${templates}/${name}`;
    if (other !== directory) await rm(other, { recursive: true, force: true });
  }
}
