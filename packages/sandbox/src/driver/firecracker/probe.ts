import { access, constants, realpath } from "node:fs/promises";
import { basename } from "node:path";
import type { Tried } from "../cached-probe.ts";
import { findProgram } from "../find-program.ts";
import { makeInitrd } from "../microvm/initrd.ts";
import { findKernel, type GuestKernel } from "../microvm/kernel.ts";
import { makeVmlinux } from "../microvm/vmlinux.ts";
import { type BootContext, boots } from "./boots.ts";
import {
  explainMissing,
  explainNoBoot,
  explainNoFirecracker,
  explainNoKvm,
  explainNotRoot,
  type Needed,
} from "./obstacles.ts";

export interface Programs {
  firecracker: string;
  jailer: string;
  unshare: string;
  bwrap: string;
  mkfs: string;
}

/** What a usable host has. */
export interface Ground {
  programs: Programs;
  kernel: GuestKernel;
}

export interface ProbeContext extends Omit<BootContext, "programs"> {
  /** Where `firecracker` and `jailer` are looked for, before the places where administrators put programs. */
  programs?: string;
}

/** Is everything there, and does a machine really boot? That /dev/kvm exists proves nothing. */
export async function probeGround(context: ProbeContext): Promise<Tried<Ground>> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    return { probe: { usable: false, reason: "Firecracker is started on Linux on x86-64 only" } };
  }
  const [firecracker, jailer] = await Promise.all(
    ["firecracker", "jailer"].map((name) => findReal(name, context.programs)),
  );
  // The jailer refuses a program that is not named so.
  if (!firecracker || !jailer || !basename(firecracker).includes("firecracker")) {
    return {
      probe: explainNoFirecracker([...(firecracker ? [] : ["firecracker"]), ...(jailer ? [] : ["jailer"])]),
    };
  }
  const [unshare, bwrap, mkfs, kernel] = await Promise.all([
    findProgram("unshare"),
    findProgram("bwrap"),
    findProgram("mkfs.erofs"),
    findKernel(),
  ]);
  if (!unshare || !bwrap || !mkfs || !kernel) {
    const found = { unshare, bwrap, "mkfs.erofs": mkfs, kernel };
    return { probe: explainMissing((Object.keys(found) as Needed[]).filter((name) => !found[name])) };
  }
  if (!(await context.keeper.identity()).canChangeUid) return { probe: explainNotRoot() };
  const kvm = await access("/dev/kvm", constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  if (!kvm) return { probe: explainNoKvm() };
  const programs = { firecracker, jailer, unshare, bwrap, mkfs };
  const images = `${context.store}/images`;
  const [vmlinux, initrd] = await Promise.all([
    makeVmlinux(kernel.image, images),
    makeInitrd(kernel, context.guest, images),
  ]);
  const why = await boots({ ...context, programs }, { kernel: vmlinux, initrd });
  if (why !== undefined) return { probe: explainNoBoot(why) };
  return { probe: { usable: true }, ground: { programs, kernel } };
}

async function findReal(name: string, first?: string): Promise<string | undefined> {
  const found = await findProgram(name, first);
  return found === undefined ? undefined : await realpath(found);
}
