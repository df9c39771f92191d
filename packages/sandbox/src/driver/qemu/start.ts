import { stat } from "node:fs/promises";
import { Handed_Kind } from "@caisson/contract/keeper";
import type { Keeper, Kept } from "../../keeper/index.ts";
import { disksOf, type Template } from "../microvm/template.ts";
import { type MachineShape, type MachineStart, machineArgv } from "./argv.ts";
import type { Ground } from "./probe.ts";

export interface StartSpec {
  sandboxId: string;
  /** Its sockets and its log go here. */
  dir: string;
  cgroups: string[];
  template: Template<MachineShape>;
  start: MachineStart;
  uid?: number;
}

/** A process that runs a machine, and the sockets by which it is reached. */
export interface Machine {
  sandboxId: string;
  kept: Kept;
  data: string;
  control: string;
  monitor: string;
}

export function machineSockets(dir: string): Pick<Machine, "data" | "control" | "monitor"> {
  return { data: `${dir}/link.sock`, control: `${dir}/control.sock`, monitor: `${dir}/monitor.sock` };
}

/** Starts QEMU with everything that it may touch in its hands. A saved machine goes on once it is loaded. */
export async function startMachine(
  context: { keeper: Keeper; guest: string; ground: Ground },
  spec: StartSpec,
): Promise<Machine> {
  const { template, start } = spec;
  const sockets = machineSockets(spec.dir);
  const disks: Record<string, string> = start.kind === "try" ? {} : { ...disksOf(template) };
  const handed = [
    { name: "control", path: sockets.control, kind: Handed_Kind.LISTEN },
    { name: "monitor", path: sockets.monitor, kind: Handed_Kind.LISTEN },
    ...Object.entries(disks).map(([name, path]) => ({ name, path, kind: Handed_Kind.READ })),
    ...contentsOf(spec),
  ];
  const kept = await context.keeper.launch({
    sandbox: spec.sandboxId,
    argv: machineArgv(
      context.ground.programs,
      context.ground.hostRoot,
      template.shape,
      start,
      Object.keys(disks),
    ),
    env: [],
    socket: sockets.data,
    ...(spec.uid === undefined ? {} : { uid: spec.uid, gid: await gidOf(spec.uid, template.shape) }),
    cgroups: spec.cgroups,
    guest: context.guest,
    log: `${spec.dir}/launch.log`,
    handed,
  });
  return { sandboxId: spec.sandboxId, kept, ...sockets };
}

function contentsOf({ template, start }: StartSpec) {
  switch (start.kind) {
    case "try":
    case "boot":
      return [
        { name: "kernel", path: template.kernel, kind: Handed_Kind.READ },
        { name: "initrd", path: template.initrd, kind: Handed_Kind.READ },
        ...(start.kind === "boot" && start.memory === "file"
          ? [{ name: "memory", path: template.memory, kind: Handed_Kind.UPDATE }]
          : []),
      ];
    case "saved":
      return [
        // QEMU wants to open it for writing; sealed, nobody can.
        { name: "memory", path: template.memory, kind: Handed_Kind.SEALED_MEMORY },
        { name: "state", path: template.state, kind: Handed_Kind.READ },
      ];
  }
}

/** Whoever uses hardware virtualisation needs the group that its device belongs to. */
async function gidOf(uid: number, { accel }: MachineShape): Promise<number> {
  return accel === "kvm" ? (await stat("/dev/kvm")).gid : uid;
}
