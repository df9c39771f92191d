import { randomUUID } from "node:crypto";
import { createWriteStream, existsSync } from "node:fs";
import { cp, mkdir, readdir } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CaissonError, type Caller } from "@caisson/contract";
import type { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";
import { inside } from "../inside.ts";
import { layerName } from "../layer.ts";
import { kinds, processKey, type SandboxRecord } from "../records.ts";
import { hashFiles, tar } from "./archive.ts";
import { wordsOf } from "./document.ts";
import { whileStill } from "./pause.ts";
import { putInPlace, unfinished } from "./place.ts";
import { parts, type SnapshotRecord, snapshotsDir } from "./record.ts";

const patienceMs = 600_000;
/** The same bytes for the same content: no process number in them, no time of reading. */
const sameBytes = ["--sort=name", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"];

export interface TakeOptions {
  memory: boolean;
  template: string;
  labels: Record<string, string>;
  /** Made for copies and gone right after: named by chance, since reading it all for a name would take long. */
  fleeting?: boolean;
}

type KeptCommands = Pick<SnapshotRecord, "processes" | "outputs">;

const noCommands: KeptCommands = { processes: [], outputs: {} };

/** Keeps a sandbox as it is now; it holds still meanwhile. */
export async function takeSnapshot(
  context: EngineContext,
  box: Box,
  options: TakeOptions,
  call: Caller,
): Promise<{ record: SnapshotRecord; isNew: boolean }> {
  if (options.memory && !box.launched?.saveMachine) {
    throw new CaissonError(
      "NOT_ENFORCEABLE",
      `the driver ${box.record.driver} cannot keep a sandbox's memory`,
    );
  }
  const dir = `${snapshotsDir(context)}/${unfinished}${randomUUID()}`;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const done = box.use();
  try {
    const kept = options.memory
      ? await keepMachine(context, box, dir, options.fleeting ?? false)
      : await whileStill(box, () => keepFiles(context, box, dir));
    const { processes, outputs } = kept;
    const sandbox = withoutVariables(box.record);
    const { memory, template, labels } = options;
    const host = memory && !options.fleeting ? await hostOf(context, sandbox.driver) : {};
    const { hash, size } = options.fleeting
      ? { hash: randomUUID().replaceAll("-", ""), size: 0 }
      : await hashFiles(dir, wordsOf({ sandbox, processes, outputs, memory, ...host }));
    const createdAt = Date.now();
    const record = {
      id: `sn_${hash.slice(0, 32)}`,
      template,
      memory,
      size,
      createdAt,
      labels,
      sandbox,
      processes,
      outputs,
      ...host,
    };
    const event = { type: "snapshot.created", sandboxId: sandbox.id };
    return await putInPlace(context, dir, record, event, call);
  } catch (error) {
    await context.parts.trees.remove(dir).catch(() => {});
    throw error;
  } finally {
    done();
  }
}

/** The files that are a sandbox's own: its home, and what it did to its project. */
async function keepFiles(context: EngineContext, box: Box, dir: string): Promise<KeptCommands> {
  const { files } = box.livingGuest();
  const signal = AbortSignal.timeout(patienceMs);
  const pack = async (path: string, name: string) =>
    pipeline(
      Readable.from(await files.pack(path, signal)),
      createWriteStream(`${dir}/${name}`, { mode: 0o600 }),
    );
  await pack(inside.home, parts.home);
  const { workspace, place } = box.record;
  if (workspace.dir === "") return noCommands;
  if (workspace.transferred) await pack(workspace.dir, parts.project);
  await keepLayer(context.dirOf(place), dir);
  return noCommands;
}

/** What lies on the host of what a sandbox did to its project. */
async function keepLayer(from: string, dir: string): Promise<void> {
  const layer = `${from}/${layerName}`;
  // The kernel's own workplace is none of the content.
  const names = existsSync(layer) ? (await readdir(layer)).filter((name) => name !== "work") : [];
  if (names.length > 0) await tar([...sameBytes, "-cf", `${dir}/${parts.layer}`, "-C", layer, ...names]);
}

/** The machine stands still for as long as its memory takes to be written. */
async function keepMachine(
  context: EngineContext,
  box: Box,
  dir: string,
  fleeting: boolean,
): Promise<KeptCommands> {
  const launched = box.launched!;
  await launched.pause!();
  try {
    await launched.saveMachine!(`${dir}/${parts.machine}`, fleeting);
    const from = context.dirOf(box.record.place);
    if (existsSync(`${from}/${parts.output}`))
      await cp(`${from}/${parts.output}`, `${dir}/${parts.output}`, { recursive: true });
    if (box.record.workspace.dir !== "") await keepLayer(from, dir);
    // While it stands still: what is stored must not run ahead of what the machine remembers to have said.
    const processes = [...box.processes.values()].map(({ record }) => structuredClone(record));
    const output = (id: string) => context.store.get<unknown>(kinds.output, processKey(box.id, id));
    const outputs = Object.fromEntries(
      processes.flatMap(({ id }) => (output(id) === undefined ? [] : [[id, output(id)]])),
    );
    return { processes, outputs };
  } finally {
    await launched.resume!();
  }
}

async function hostOf(context: EngineContext, driver: string): Promise<Pick<SnapshotRecord, "host">> {
  const host = await context.parts.drivers.find(({ name }) => name === driver)?.machineHost?.();
  return host ? { host } : {};
}

function withoutVariables(record: SandboxRecord): SandboxRecord {
  const { env: _env, secrets: _secrets, ...spec } = record.spec as Record<string, unknown>;
  return { ...record, session: "", spec, launch: undefined };
}
