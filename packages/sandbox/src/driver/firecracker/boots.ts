import { randomUUID } from "node:crypto";
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "@caisson/contract/errors";
import { describeEnd, readLog } from "../microvm/end.ts";
import type { BootContext as MachineContext } from "../microvm/template.ts";
import type { Programs } from "./probe.ts";
import { startMachine } from "./start.ts";

export interface BootContext extends MachineContext {
  programs: Programs;
}

/** Hardware virtualisation that works boots within a second; where it hangs, it hangs at once. */
const bootMs = 10_000;
const memoryBytes = 256 * 1024 * 1024;
/** What the first process says when it was only started to be seen (guest/src/vm). */
const words = "caisson: the machine boots";

/**
 * Boots a machine that leaves at once. What came of it is remembered until the host boots again or has another
 * Firecracker: trying costs seconds. Returns why not, or nothing.
 */
export async function boots(
  context: BootContext,
  parts: { kernel: string; initrd: string },
): Promise<string | undefined> {
  const note = `${context.store}/firecracker-boots.json`;
  const { mtimeMs, size } = await stat(context.programs.firecracker);
  const bootId = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "unknown");
  const key = JSON.stringify([bootId.trim(), context.programs.firecracker, mtimeMs, size, parts]);
  const known = JSON.parse(await readFile(note, "utf8").catch(() => "{}")) as { key?: string; why?: string };
  if (known.key === key) return known.why;
  const why = await tryBoot(context, parts);
  await writeFile(note, JSON.stringify({ key, why }), { mode: 0o600 });
  return why;
}

async function tryBoot(
  context: BootContext,
  parts: { kernel: string; initrd: string },
): Promise<string | undefined> {
  const sandboxId = `try-${randomUUID()}`;
  const dir = `${context.store}/${sandboxId}`;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const uid = (await context.takeUid()) ?? 0;
  try {
    const spec = { sandboxId, dir, cgroups: [], uid, shape: { memoryBytes, sandboxBytes: memoryBytes } };
    const machine = await startMachine(context, { ...spec, start: { kind: "try", ...parts } });
    const ended = await Promise.race([machine.kept.ended, sleep(bootMs, undefined, { ref: false })]);
    const log = `${dir}/launch.log`;
    if ((await readLog(log)).includes(words)) return undefined;
    if (ended === undefined) return `its kernel said nothing within ${bootMs / 1000} seconds`;
    return await describeEnd(ended, log, "Firecracker");
  } catch (error) {
    return CaissonError.from(error).message;
  } finally {
    await context.keeper.kill(sandboxId).catch(() => {});
    context.releaseUid(uid);
    await rm(dir, { recursive: true, force: true });
  }
}
