import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper, Kept } from "../../keeper/index.ts";
import { describeEnd } from "../microvm/end.ts";
import { type Disks, disksOf, type TemplateParts } from "../microvm/template.ts";
import { Api } from "./api.ts";
import { apiSocket, jailerArgv, kernelCommandLine, type MachineShape, vsockSocket } from "./argv.ts";
import { jailId, jailRoot, makeJail } from "./jail.ts";
import type { Programs } from "./probe.ts";
import { type Door, linkPort } from "./vsock.ts";

const answersWithinMs = 10_000;
const loadMs = 60_000;
/** The guest's number on a device that each machine has to itself. */
const guestCid = 3;

export interface StartSpec {
  sandboxId: string;
  /** Its jail and its log go here. */
  dir: string;
  cgroups: string[];
  uid: number;
  shape: MachineShape;
  /** What it is made of: the host's paths. */
  start:
    | { kind: "try"; kernel: string; initrd: string }
    | ({ kind: "boot" } & TemplateParts)
    | ({ kind: "load"; state: string; memory: string } & Disks);
}

/** A process that runs a machine. */
export interface Machine {
  sandboxId: string;
  kept: Kept;
  root: string;
  api: Api;
  door: Door;
}

/** Starts Firecracker in a jail with everything that it may touch, and the machine in it. */
export async function startMachine(
  context: { keeper: Keeper; guest: string; programs: Programs },
  spec: StartSpec,
): Promise<Machine> {
  const { keeper, programs } = context;
  const { uid, start } = spec;
  const { kind: _, ...files } = start;
  const jail = { id: jailId(spec.sandboxId), uid, gid: uid, base: `${spec.dir}/jail` };
  const root = jailRoot(jail.base, programs.firecracker, jail.id);
  await makeJail(root, files);
  const log = `${spec.dir}/launch.log`;
  const kept = await keeper.launch({
    sandbox: spec.sandboxId,
    argv: jailerArgv(programs, jail, spec.shape),
    env: [],
    socket: "",
    cgroups: spec.cgroups,
    guest: context.guest,
    log,
  });
  const api = new Api(`${root}/${apiSocket}`, uid);
  const machine = {
    sandboxId: spec.sandboxId,
    kept,
    root,
    api,
    door: { socket: `${root}/${vsockSocket}`, uid },
  };
  try {
    await answering(machine, log);
    await begin(api, spec);
    return machine;
  } catch (error) {
    await keeper.kill(spec.sandboxId).catch(() => {});
    throw error;
  }
}

async function begin(api: Api, { shape, start }: StartSpec): Promise<void> {
  if (start.kind === "load") {
    const memory = { backend_type: "File", backend_path: "/memory" };
    const saved = { snapshot_path: "/state", mem_backend: memory, resume_vm: true };
    await api.put("/snapshot/load", saved, loadMs);
    return;
  }
  await api.put("/machine-config", {
    vcpu_count: 1,
    mem_size_mib: Math.floor(shape.memoryBytes / 1024 / 1024),
    smt: false,
    track_dirty_pages: false,
  });
  await api.put("/boot-source", {
    kernel_image_path: "/kernel",
    initrd_path: "/initrd",
    boot_args: kernelCommandLine(start.kind === "try" ? "none" : `vsock:${linkPort}`, "beside" in start),
  });
  if (start.kind === "boot") {
    for (const name of Object.keys(disksOf(start))) {
      const disk = { path_on_host: `/${name}`, is_root_device: false, is_read_only: true };
      await api.put(`/drives/${name}`, { drive_id: name, ...disk });
    }
    await api.put("/vsock", { guest_cid: guestCid, uds_path: `/${vsockSocket}` });
  }
  await api.put("/actions", { action_type: "InstanceStart" });
}

/** Firecracker makes its socket a moment after the jailer has become it. */
async function answering({ api, kept }: Machine, log: string): Promise<void> {
  let ended: string | undefined;
  void kept.ended.then(async (how) => {
    ended = await describeEnd(how, log, "Firecracker");
  });
  for (const until = performance.now() + answersWithinMs; ; await sleep(2)) {
    try {
      await api.get("/version");
      return;
    } catch (cause) {
      if (ended !== undefined) throw new CaissonError("SANDBOX_FAILED", ended);
      if (performance.now() > until) {
        throw new CaissonError("SANDBOX_FAILED", "Firecracker did not answer in time", { cause });
      }
    }
  }
}
