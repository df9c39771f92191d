import type { Shape } from "../microvm/template.ts";

/** A machine of this shape; a saved state fits only the same shape. */
export type MachineShape = Shape;

/** What Firecracker may write into any one file, beyond the machine's memory: the state of its devices. */
const moreFileBytes = 64 * 1024 * 1024;
const openFiles = 256;

/** The name of the API's socket in the jail, and of the socket behind which the machine's own are. */
export const apiSocket = "api.sock";
export const vsockSocket = "vsock.sock";

export interface Jail {
  /** Alphanumeric characters and hyphens, at most 64. */
  id: string;
  uid: number;
  gid: number;
  /** The jailer makes `BASE/PROGRAM/ID/root` the machine's root directory. */
  base: string;
}

/**
 * The command that starts a machine: the jailer, in namespaces without network, which makes the jail and becomes Firecracker in
 * it. Control groups were joined before. No process stays in between: what the keeper watches is Firecracker itself.
 */
export function jailerArgv(
  programs: { unshare: string; jailer: string; firecracker: string },
  { id, uid, gid, base }: Jail,
  { memoryBytes }: MachineShape,
): string[] {
  return [
    ...[programs.unshare, "--net", "--ipc", "--uts", "--", programs.jailer],
    ...["--id", id, "--exec-file", programs.firecracker, "--uid", String(uid), "--gid", String(gid)],
    ...["--chroot-base-dir", base],
    ...["--resource-limit", `fsize=${memoryBytes + moreFileBytes}`],
    ...["--resource-limit", `no-file=${openFiles}`],
    ...["--", "--api-sock", `/${apiSocket}`, "--level", "Error"],
  ];
}

/**
 * @param link how the first process is to be reached: `vsock:PORT`, or `none` to boot and leave at once
 * @param hasBeside whether there is a second disk
 */
export function kernelCommandLine(link: string, hasBeside: boolean): string {
  return [
    ...["console=ttyS0", "loglevel=1", "panic=-1", "reboot=k", "edd=off", "random.trust_cpu=off"],
    // There is a keyboard controller for resets alone; looking for keyboards takes half a second.
    ...["i8042.noaux", "i8042.nomux", "i8042.dumbkbd"],
    `caisson.link=${link}`,
    ...(hasBeside ? ["caisson.beside"] : []),
  ].join(" ");
}
