import { randomUUID } from "node:crypto";
import { createWriteStream, existsSync } from "node:fs";
import { cp, mkdir, readdir, rename } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "@caisson/contract";
import type { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";
import { inside } from "../inside.ts";
import { layerName } from "../layer.ts";
import { kinds, processKey, type SandboxRecord } from "../records.ts";
import { hashFiles, tar } from "./archive.ts";
import { whileStill } from "./pause.ts";
import { allSnapshots, parts, type SnapshotRecord, snapshotDir, snapshotsDir } from "./record.ts";

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
  actor: string,
): Promise<{ record: SnapshotRecord; isNew: boolean }> {
  if (options.memory && !box.launched?.saveMachine) {
    throw new CaissonError(
      "NOT_ENFORCEABLE",
      `the driver ${box.record.driver} cannot keep a sandbox's memory`,
    );
  }
  const dir = `${snapshotsDir(context)}/new-${randomUUID()}`;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const done = box.use();
  try {
    const kept = options.memory
      ? await keepMachine(context, box, dir, options.fleeting ?? false)
      : await whileStill(box, () => keepFiles(context, box, dir));
    const { processes, outputs } = kept;
    const sandbox = withoutVariables(box.record);
    const { spec, driver, image, workspace } = sandbox;
    const { hash, size } = options.fleeting
      ? { hash: randomUUID().replaceAll("-", ""), size: 0 }
      : await hashFiles(dir, JSON.stringify([spec, driver, image, workspace, processes]));
    const { memory, template, labels } = options;
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
    };
    const known = context.store.get<SnapshotRecord>(kinds.snapshot, record.id);
    // The same content is kept once; a name that it has already stays.
    if (known && (template === "" || template === known.template)) {
      await context.parts.trees.remove(dir);
      return { record: known, isNew: false };
    }
    await context.parts.trees.remove(snapshotDir(context, record.id));
    await rename(dir, snapshotDir(context, record.id));
    await store(context, record, actor);
    return { record, isNew: known === undefined };
  } catch (error) {
    await context.parts.trees.remove(dir).catch(() => {});
    throw error;
  } finally {
    done();
  }
}

/** A template replaces the one of the same name, which stays as a snapshot. */
async function store(context: EngineContext, record: SnapshotRecord, actor: string): Promise<void> {
  const { id, template, memory, sandbox } = record;
  const before = template === "" ? [] : allSnapshots(context).filter((other) => other.template === template);
  await context.commit(
    [{ type: "snapshot.created", actor, sandboxId: sandbox.id, data: { snapshot: id, template, memory } }],
    [
      ...before.map((other) => ({ put: kinds.snapshot, key: other.id, value: { ...other, template: "" } })),
      { put: kinds.snapshot, key: id, value: record },
    ],
  );
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
  const layer = `${context.dirOf(place)}/${layerName}`;
  // The kernel's own workplace is none of the content.
  const names = existsSync(layer) ? (await readdir(layer)).filter((name) => name !== "work") : [];
  if (names.length > 0) await tar([...sameBytes, "-cf", `${dir}/${parts.layer}`, "-C", layer, ...names]);
  return noCommands;
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
    for (const name of [parts.output, layerName]) {
      if (existsSync(`${from}/${name}`)) await cp(`${from}/${name}`, `${dir}/${name}`, { recursive: true });
    }
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

function withoutVariables(record: SandboxRecord): SandboxRecord {
  const { env: _env, secrets: _secrets, ...spec } = record.spec as Record<string, unknown>;
  return { ...record, session: "", spec, launch: undefined };
}
