import type { Keeper } from "../../keeper/index.ts";
import { type HostEntry, readHostRoot } from "../bubblewrap/host-root.ts";
import { explainNamespaces } from "../bubblewrap/obstacles.ts";
import type { Probe } from "../driver.ts";
import { findProgram } from "../find-program.ts";
import { findKernel, type GuestKernel } from "../microvm/kernel.ts";
import { readTscKhz } from "./clock.ts";
import { explainMissing, type Needed } from "./obstacles.ts";

/** What a usable host has. */
export interface Ground {
  programs: { bwrap: string; qemu: string; mkfs: string; prlimit: string };
  kernel: GuestKernel;
  hostRoot: HostEntry[];
  tscKhz: number;
  /** The keeper's. */
  uid: number;
  /** The keeper is the host's root: each machine gets a uid of its own. */
  givesUids: boolean;
}

/** Is everything there? Whether machines really boot, the first template tells, with a time limit. */
export async function probeGround(keeper: Keeper): Promise<{ probe: Probe; ground?: Ground }> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    return { probe: { usable: false, reason: "QEMU microVMs need Linux on x86-64" } };
  }
  const [bwrap, qemu, mkfs, prlimit, kernel] = await Promise.all([
    findProgram("bwrap"),
    findProgram("qemu-system-x86_64"),
    findProgram("mkfs.erofs"),
    findProgram("prlimit"),
    findKernel(),
  ]);
  if (!bwrap || !qemu || !mkfs || !prlimit || !kernel) {
    const found = { bwrap, "qemu-system-x86_64": qemu, "mkfs.erofs": mkfs, prlimit, kernel };
    return { probe: explainMissing((Object.keys(found) as Needed[]).filter((name) => !found[name])) };
  }
  const identity = await keeper.identity();
  if (!identity.userNamespaces) return { probe: explainNamespaces(identity.userNamespacesReason) };
  const { uid, canChangeUid: givesUids } = identity;
  const [hostRoot, tscKhz] = await Promise.all([readHostRoot(), readTscKhz()]);
  const programs = { bwrap, qemu, mkfs, prlimit };
  return { probe: { usable: true }, ground: { programs, kernel, hostRoot, tscKhz, uid, givesUids } };
}
