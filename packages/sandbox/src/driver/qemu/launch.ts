import { copyFile, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper, Kept } from "../../keeper/index.ts";
import type { Attachment, Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { describeEnd } from "../microvm/end.ts";
import type { MachineShape } from "./argv.ts";
import { qemuMechanisms } from "./mechanisms.ts";
import { connectPort, limitMachine, rehearse } from "./port.ts";
import type { Ground } from "./probe.ts";
import { continueMachine, saveMachine, stopMachine } from "./save.ts";
import { machineSockets, startMachine } from "./start.ts";
import type { Template } from "./template.ts";

const saveMs = 120_000;
const rehearsalMs = 60_000;
/** What a machine was made from, beside its sockets. */
const descriptionName = "machine.json";

export interface LaunchContext {
  keeper: Keeper;
  guest: string;
  ground: Ground;
}

/** Starts a copy of the template, or a machine that was saved. */
export async function launchQemu(
  context: LaunchContext,
  template: Template,
  spec: LaunchSpec,
  uid?: number,
): Promise<Launched> {
  if (spec.image !== "host") {
    throw new CaissonError("INVALID_INPUT", `the qemu driver has no image "${spec.image}"`);
  }
  const description = JSON.stringify({ ...template, memory: undefined, state: undefined });
  if (spec.machine !== undefined) await mustFit(spec.machine, description);
  const machine = await startMachine(context, {
    sandboxId: spec.sandboxId,
    dir: spec.dir,
    cgroups: spec.cgroups,
    template,
    ...(spec.machine === undefined
      ? { start: { kind: "clone" } }
      : { start: { kind: "restore" }, saved: spec.machine }),
    ...(uid === undefined ? {} : { uid }),
  });
  const record: LaunchRecord = {
    driver: "qemu",
    pid: machine.kept.pid,
    startTime: Number(machine.kept.startTime),
    uid: uid ?? context.ground.uid,
    gid: uid ?? process.getgid?.() ?? 0,
    socket: machine.data,
  };
  await writeFile(`${spec.dir}/${descriptionName}`, description);
  return new QemuSandbox(
    context.keeper,
    spec.sandboxId,
    machine.kept,
    record,
    template.shape,
    uid !== undefined,
  );
}

/** A kept machine has its disk's blocks in memory: it goes on only with the very same disk, kernel and guest. */
async function mustFit(file: string, description: string): Promise<void> {
  if ((await readFile(`${file}.json`, "utf8")) === description) return;
  throw new CaissonError(
    "SANDBOX_FAILED",
    "this machine was kept before the host or Caisson was upgraded; take the snapshot again",
  );
}

/** Finds a machine again by its record. */
export async function adoptQemu(
  keeper: Keeper,
  sandboxId: string,
  record: LaunchRecord,
): Promise<Launched | undefined> {
  const kept = await keeper.adopt(sandboxId, { pid: record.pid, startTime: BigInt(record.startTime) });
  if (!kept) return undefined;
  const { shape } = JSON.parse(
    await readFile(`${dirname(record.socket)}/${descriptionName}`, "utf8"),
  ) as Template;
  const hasOwnUid = record.uid !== (await keeper.identity()).uid;
  return new QemuSandbox(keeper, sandboxId, kept, record, shape, hasOwnUid);
}

class QemuSandbox implements Launched {
  readonly record: LaunchRecord;
  readonly ended: Promise<string>;
  readonly #keeper: Keeper;
  readonly #sandboxId: string;
  readonly #shape: MachineShape;
  readonly #hasOwnUid: boolean;

  constructor(
    keeper: Keeper,
    sandboxId: string,
    kept: Kept,
    record: LaunchRecord,
    shape: MachineShape,
    hasOwnUid: boolean,
  ) {
    this.#keeper = keeper;
    this.#sandboxId = sandboxId;
    this.record = record;
    this.#shape = shape;
    this.#hasOwnUid = hasOwnUid;
    this.ended = kept.ended.then((ended) => describeEnd(ended, record.socket));
  }

  connect(): Promise<Duplex> {
    const { control, data } = this.#sockets;
    return connectPort({ control, data });
  }

  kill(): Promise<void> {
    return this.#keeper.kill(this.#sandboxId);
  }

  attach(): Promise<Attachment[]> {
    throw new CaissonError("NOT_ENFORCEABLE", "a microVM shares no directory with the host");
  }

  mechanisms() {
    return qemuMechanisms(this.#shape, this.#hasOwnUid);
  }

  async limitMemory(bytes: number): Promise<void> {
    if (bytes < this.#shape.memoryBytes) await limitMachine(this.#sockets.control, bytes);
  }

  /** Hardware has nothing to translate first. */
  async rehearse(): Promise<void> {
    if (this.#shape.accel === "tcg") await rehearse(this.#sockets.control, rehearsalMs);
  }

  pause(): Promise<void> {
    return stopMachine(this.#sockets.monitor);
  }

  resume(): Promise<void> {
    return continueMachine(this.#sockets.monitor);
  }

  /** The machine must be paused. */
  async saveMachine(file: string): Promise<void> {
    await copyFile(`${dirname(this.record.socket)}/${descriptionName}`, `${file}.json`);
    await saveMachine(this.#keeper, this.#sockets.monitor, file, saveMs);
  }

  get #sockets() {
    return machineSockets(dirname(this.record.socket));
  }
}
