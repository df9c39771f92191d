import { createReadStream, existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { CaissonError, type CallContext, SandboxSpecSchema } from "@caisson/contract";
import type { StateChange } from "@caisson/store";
import type { Guest } from "../../link/guest.ts";
import { continueBox, loadProcesses } from "../adopt.ts";
import { bound, groupOf } from "../bounds.ts";
import { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";
import type { SpecInit } from "../engine.ts";
import { inside } from "../inside.ts";
import { layerName } from "../layer.ts";
import { endBox } from "../lifecycle.ts";
import { kinds, processKey, type SandboxRecord } from "../records.ts";
import { messageOf, register, startError } from "../start-box.ts";
import { tar } from "./archive.ts";
import { parts, type SnapshotRecord, snapshotDir } from "./record.ts";
import { unpackLayer } from "./unpack.ts";

const patienceMs = 600_000;
const unbounded = { maxBytes: 0n, maxFiles: 0n, anyLinks: true };

/** What is asked for, on top of what the snapshot's sandbox was made from. */
export function specFrom(snapshot: SnapshotRecord, init: SpecInit): SpecInit {
  const asked = create(SandboxSpecSchema, init);
  const before = fromJson(SandboxSpecSchema, snapshot.sandbox.spec as JsonValue, {
    ignoreUnknownFields: true,
  });
  if (asked.workspace?.dir && asked.workspace.dir !== snapshot.sandbox.workspace.dir) {
    throw new CaissonError("INVALID_INPUT", "a snapshot brings its own project: leave the workspace out");
  }
  const { driver, image, workspace } = snapshot.sandbox;
  return create(SandboxSpecSchema, {
    ...given(before),
    ...given(asked),
    driver,
    image: image === "host" ? "" : image,
    ...(workspace.dir === "" ? {} : { workspace: { dir: workspace.dir, mode: workspace.mode } }),
    snapshot: snapshot.id,
  });
}

/** Fields that say something. */
function given(spec: object): Omit<SpecInit, "$typeName"> {
  const says = (value: unknown) =>
    value !== undefined && value !== "" && value !== 0 && !(typeof value === "object" && isEmpty(value));
  return Object.fromEntries(
    Object.entries(spec).filter(([name, value]) => !name.startsWith("$") && says(value)),
  );
}

function isEmpty(value: object | null): boolean {
  return value === null || Object.keys(value).length === 0;
}

/** Before the project is handed in: its layer as it was, in place of what is there. */
export async function restoreLayer(
  context: EngineContext,
  snapshot: SnapshotRecord,
  dir: string,
): Promise<void> {
  const archive = `${snapshotDir(context, snapshot.id)}/${parts.layer}`;
  if (!existsSync(archive)) return;
  const layer = `${dir}/${layerName}`;
  if (existsSync(`${layer}/upper`)) await context.parts.trees.remove(`${layer}/upper`);
  if (snapshot.imported) await unpackLayer(context, archive, dir);
  else await tar(["-xpf", archive, "-C", layer]);
}

/** Once the sandbox is sealed: its home, and a project that is not mounted, at `project`. */
export async function restoreFiles(
  context: EngineContext,
  snapshot: SnapshotRecord,
  project: string,
  guest: Guest,
): Promise<void> {
  const dir = snapshotDir(context, snapshot.id);
  const { files } = guest;
  const signal = AbortSignal.timeout(patienceMs);
  if (existsSync(`${dir}/${parts.project}`)) {
    for await (const batch of files.list(project, false, signal)) {
      for (const { path } of batch.entries)
        await files.remove(`${project}/${Buffer.from(path).toString()}`, true, signal);
    }
    await files.unpack(project, unbounded, createReadStream(`${dir}/${parts.project}`), signal);
  }
  await files.unpack(inside.home, unbounded, createReadStream(`${dir}/${parts.home}`), signal);
}

/**
 * A sandbox that goes on where a machine was kept, its commands too. They are known to it by the same numbers; what
 * they had printed is copied.
 */
export async function continueMachine(
  context: EngineContext,
  snapshot: SnapshotRecord,
  call: CallContext,
  remember: (sandboxId: string) => StateChange[],
): Promise<Box> {
  const place = context.admission.enter(snapshot.sandbox.limits);
  if (place.waiting) {
    place.release();
    throw new CaissonError("QUEUE_FULL", "there is no place for another sandbox now");
  }
  const dir = snapshotDir(context, snapshot.id);
  let launch: Awaited<ReturnType<typeof context.parts.pool.launch>>;
  try {
    const kind = { driver: snapshot.sandbox.driver, image: "host", machine: `${dir}/${parts.machine}` };
    launch = await context.parts.pool.launch(kind);
  } catch (error) {
    place.release();
    throw startError(error);
  }
  const { id, launched } = launch;
  const box = new Box(recordOf(context, snapshot, id, call.actor));
  box.place = place;
  box.launched = launched;
  box.record.launch = launched.record;
  box.cgroup = groupOf(context, launch);
  register(context, box);
  try {
    const driver = context.parts.drivers.find(({ name }) => name === snapshot.sandbox.driver)!;
    await bound(box.cgroup, { driver, limits: snapshot.sandbox.limits }, launched);
    if (existsSync(`${dir}/${parts.output}`))
      await cp(`${dir}/${parts.output}`, `${launch.dir}/${parts.output}`, { recursive: true });
    await restoreLayer(context, snapshot, launch.dir);
    const processes = snapshot.processes.map((record) => ({
      put: kinds.process,
      key: processKey(id, record.id),
      value: { ...record, sandboxId: id },
    }));
    const outputs = Object.entries(snapshot.outputs).map(([process, value]) => ({
      put: kinds.output,
      key: processKey(id, process),
      value,
    }));
    const data = { snapshot: snapshot.id, from: snapshot.sandbox.id };
    await context.commit(
      [{ type: "sandbox.restored", actor: call.actor, sandboxId: id, data }],
      [box.put(), ...processes, ...outputs, ...remember(id)],
    );
    loadProcesses(context, box);
    await continueBox(context, box);
    return box;
  } catch (error) {
    await endBox(context, box, "start_failed", messageOf(error), call.actor);
    throw startError(error);
  }
}

function recordOf(
  context: EngineContext,
  { sandbox }: SnapshotRecord,
  id: string,
  actor: string,
): SandboxRecord {
  const now = Date.now();
  const fresh = { id, place: id, session: "", actor, createdAt: now, readyAt: now, seq: context.store.head };
  return { ...sandbox, ...fresh, runs: "", paused: false, bootId: context.bootId };
}
