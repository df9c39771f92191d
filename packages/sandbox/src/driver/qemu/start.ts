import { stat } from "node:fs/promises";
import { Handed_Kind } from "@caisson/contract/keeper";
import { firstHandedDescriptor, type Keeper, type Kept } from "../../keeper/index.ts";
import { type MachineShape, type MachineStart, machineArgv } from "./argv.ts";
import type { Ground } from "./probe.ts";
import { loadMachine } from "./save.ts";
import type { Template } from "./template.ts";

const loadMs = 120_000;

export interface StartSpec {
  sandboxId: string;
  /** Its sockets and its log go here. */
  dir: string;
  cgroups: string[];
  template: Template;
  start: MachineStart;
  /** The stream of a saved machine, for `restore`. */
  saved?: string;
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

/** Starts QEMU with everything that it may touch in its hands. */
export async function startMachine(
  context: { keeper: Keeper; guest: string; ground: Ground },
  spec: StartSpec,
): Promise<Machine> {
  const { template, start } = spec;
  const sockets = machineSockets(spec.dir);
  const handed = [
    { name: "control", path: sockets.control, kind: Handed_Kind.LISTEN },
    { name: "monitor", path: sockets.monitor, kind: Handed_Kind.LISTEN },
    ...(start.kind === "try" ? [] : [{ name: "image", path: template.image, kind: Handed_Kind.READ }]),
    ...contentsOf(spec),
  ];
  const kept = await context.keeper.launch({
    sandbox: spec.sandboxId,
    argv: machineArgv(context.ground.programs, context.ground.hostRoot, template.shape, start),
    env: [],
    socket: sockets.data,
    ...(spec.uid === undefined ? {} : { uid: spec.uid, gid: await gidOf(spec.uid, template.shape) }),
    cgroups: spec.cgroups,
    guest: context.guest,
    log: `${spec.dir}/launch.log`,
    handed,
  });
  const machine = { sandboxId: spec.sandboxId, kept, ...sockets };
  const state = handed.findIndex(({ name }) => name === "state");
  if (state < 0) return machine;
  try {
    await loadMachine(sockets.monitor, firstHandedDescriptor + state, loadMs);
    return machine;
  } catch (error) {
    await context.keeper.kill(spec.sandboxId).catch(() => {});
    throw error;
  }
}

function contentsOf({ template, start, saved }: StartSpec) {
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
    case "clone":
      return [
        // QEMU wants to open it for writing; sealed, nobody can.
        { name: "memory", path: template.memory, kind: Handed_Kind.SEALED_MEMORY },
        { name: "state", path: template.state, kind: Handed_Kind.READ },
      ];
    case "restore":
      return [{ name: "state", path: saved ?? "", kind: Handed_Kind.READ }];
  }
}

/** Whoever uses hardware virtualisation needs the group that its device belongs to. */
async function gidOf(uid: number, { accel }: MachineShape): Promise<number> {
  return accel === "kvm" ? (await stat("/dev/kvm")).gid : uid;
}
