import { copyFile, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper, Kept } from "../../keeper/index.ts";
import type { Attachment, Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { describeEnd } from "../microvm/end.ts";
import { Api } from "./api.ts";
import { apiSocket, type MachineShape } from "./argv.ts";
import { firecrackerMechanisms } from "./mechanisms.ts";
import type { Programs } from "./probe.ts";
import { keepMachine } from "./save.ts";
import { startMachine } from "./start.ts";
import type { Template } from "./template.ts";
import { connectLink, limitMachine } from "./vsock.ts";

/** What a machine was made from, beside its jail. */
const descriptionName = "machine.json";

export interface LaunchContext {
  keeper: Keeper;
  guest: string;
  programs: Programs;
}

/** Starts a copy of the template, or a machine that was saved. */
export async function launchFirecracker(
  context: LaunchContext,
  template: Template,
  spec: LaunchSpec,
  uid: number,
): Promise<Launched> {
  if (spec.image !== "host") {
    throw new CaissonError("INVALID_INPUT", `the firecracker driver has no image "${spec.image}"`);
  }
  const description = JSON.stringify({ ...template, memory: undefined, state: undefined });
  if (spec.machine !== undefined) await mustFit(spec.machine, description);
  const saved = spec.machine;
  const machine = await startMachine(context, {
    sandboxId: spec.sandboxId,
    dir: spec.dir,
    cgroups: spec.cgroups,
    uid,
    shape: template.shape,
    start: {
      kind: "load",
      image: template.image,
      state: saved ?? template.state,
      memory: saved === undefined ? template.memory : memoryOf(saved),
    },
  });
  const record: LaunchRecord = {
    driver: "firecracker",
    pid: machine.kept.pid,
    startTime: Number(machine.kept.startTime),
    uid,
    gid: uid,
    socket: machine.door.socket,
  };
  await writeFile(`${spec.dir}/${descriptionName}`, description);
  return new FirecrackerSandbox(context.keeper, spec, machine.kept, record, template.shape);
}

/** A kept machine has its disk's blocks in memory: it goes on only with the very same disk, kernel and guest. */
async function mustFit(file: string, description: string): Promise<void> {
  if ((await readFile(`${file}.json`, "utf8")) === description) return;
  throw new CaissonError(
    "SANDBOX_FAILED",
    "this machine was kept before the host or Caisson was upgraded; take the snapshot again",
  );
}

function memoryOf(file: string): string {
  return `${file}.memory`;
}

/** Finds a machine again by its record. */
export async function adoptFirecracker(
  keeper: Keeper,
  sandboxId: string,
  record: LaunchRecord,
): Promise<Launched | undefined> {
  const kept = await keeper.adopt(sandboxId, { pid: record.pid, startTime: BigInt(record.startTime) });
  if (!kept) return undefined;
  // …/jail/PROGRAM/ID/root/SOCKET
  const dir = record.socket.split("/").slice(0, -5).join("/");
  const { shape } = JSON.parse(await readFile(`${dir}/${descriptionName}`, "utf8")) as Template;
  return new FirecrackerSandbox(keeper, { sandboxId, dir }, kept, record, shape);
}

class FirecrackerSandbox implements Launched {
  readonly record: LaunchRecord;
  readonly ended: Promise<string>;
  readonly #keeper: Keeper;
  readonly #place: { sandboxId: string; dir: string };
  readonly #shape: MachineShape;

  constructor(
    keeper: Keeper,
    place: { sandboxId: string; dir: string },
    kept: Kept,
    record: LaunchRecord,
    shape: MachineShape,
  ) {
    this.#keeper = keeper;
    this.#place = place;
    this.record = record;
    this.#shape = shape;
    this.ended = kept.ended.then((how) => describeEnd(how, `${place.dir}/launch.log`, "Firecracker"));
  }

  connect(): Promise<Duplex> {
    return connectLink(this.record);
  }

  kill(): Promise<void> {
    return this.#keeper.kill(this.#place.sandboxId);
  }

  attach(): Promise<Attachment[]> {
    throw new CaissonError("NOT_ENFORCEABLE", "a microVM shares no directory with the host");
  }

  mechanisms() {
    return firecrackerMechanisms(this.#shape);
  }

  async limitMemory(bytes: number): Promise<void> {
    if (bytes < this.#shape.memoryBytes) await limitMachine(this.record, bytes);
  }

  async pause(): Promise<void> {
    await this.#api.patch("/vm", { state: "Paused" });
  }

  async resume(): Promise<void> {
    await this.#api.patch("/vm", { state: "Resumed" });
  }

  /** The machine must be paused. */
  async saveMachine(file: string): Promise<void> {
    await copyFile(`${this.#place.dir}/${descriptionName}`, `${file}.json`);
    const machine = { api: this.#api, root: dirname(this.record.socket) };
    await keepMachine(machine, { state: file, memory: memoryOf(file) });
  }

  get #api(): Api {
    return new Api(`${dirname(this.record.socket)}/${apiSocket}`, this.record.uid);
  }
}
