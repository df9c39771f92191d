import { randomUUID } from "node:crypto";
import { access, constants, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { readLog } from "../microvm/end.ts";
import { makeInitrd } from "../microvm/initrd.ts";
import type { BootContext } from "../microvm/template.ts";
import type { MachineShape } from "./argv.ts";
import type { Ground } from "./probe.ts";
import { startMachine } from "./start.ts";

export interface HardwareContext extends BootContext {
  ground: Ground;
}

/** Hardware virtualisation that works boots within a second; where it hangs, it hangs at once. */
const bootMs = 10_000;
const memoryBytes = 256 * 1024 * 1024;
/** What the first process says when it was only started to be seen (guest/src/vm). */
const words = "caisson: the machine boots";

/** What is known without trying: whether machines run on the processor itself. */
export async function knownHardware(store: string, qemu: string): Promise<boolean | undefined> {
  const usable = await access("/dev/kvm", constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  if (!usable) return false;
  const text = await readFile(noteOf(store), "utf8").catch(() => "{}");
  const known = JSON.parse(text) as { key?: string; boots?: boolean };
  return known.key === (await keyOf(qemu)) ? known.boots : undefined;
}

/**
 * Tries it: /dev/kvm can be there and not run a machine. What came of it is remembered until the host boots again or
 * has another QEMU, since trying costs seconds.
 */
export async function hasHardware(context: HardwareContext): Promise<boolean> {
  const { store } = context;
  const { qemu } = context.ground.programs;
  const known = await knownHardware(store, qemu);
  if (known !== undefined) return known;
  const boots = await tryBoot(context).catch(() => false);
  await writeFile(noteOf(store), JSON.stringify({ key: await keyOf(qemu), boots }), { mode: 0o600 });
  return boots;
}

function noteOf(store: string): string {
  return `${store}/kvm.json`;
}

async function keyOf(qemu: string): Promise<string> {
  const bootId = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "unknown");
  const { mtimeMs, size } = await stat(qemu);
  return JSON.stringify([bootId.trim(), mtimeMs, size]);
}

async function tryBoot(context: HardwareContext): Promise<boolean> {
  const { keeper, ground, store } = context;
  const sandboxId = `try-${randomUUID()}`;
  const dir = `${store}/${sandboxId}`;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const uid = await context.takeUid();
  try {
    const initrd = await makeInitrd(ground.kernel, context.guest, `${store}/images`);
    const shape: MachineShape = {
      memoryBytes,
      sandboxBytes: memoryBytes,
      accel: "kvm",
      tscKhz: ground.tscKhz,
    };
    const none = { image: "", memory: "", state: "" };
    const machine = await startMachine(context, {
      sandboxId,
      dir,
      cgroups: [],
      template: { shape, kernel: ground.kernel.image, initrd, ...none },
      start: { kind: "try" },
      ...(uid === undefined ? {} : { uid }),
    });
    await Promise.race([machine.kept.ended, sleep(bootMs, undefined, { ref: false })]);
    return (await readLog(`${dir}/launch.log`)).includes(words);
  } finally {
    await keeper.kill(sandboxId).catch(() => {});
    if (uid !== undefined) context.releaseUid(uid);
    await rm(dir, { recursive: true, force: true });
  }
}
