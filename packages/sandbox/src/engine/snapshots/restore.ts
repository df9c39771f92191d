import { createReadStream, existsSync } from "node:fs";
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { CaissonError, SandboxSpecSchema } from "@caisson/contract";
import type { Guest } from "../../link/guest.ts";
import type { EngineContext } from "../context.ts";
import type { SpecInit } from "../engine.ts";
import { inside } from "../inside.ts";
import { layerName } from "../layer.ts";
import { tar } from "./archive.ts";
import { parts, type SnapshotRecord, snapshotDir } from "./record.ts";

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
export function given(spec: object): Omit<SpecInit, "$typeName"> {
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
  if (!snapshot.imported) return tar(["-xpf", archive, "-C", layer]);
  const { unpackLayer } = await import("./unpack.ts");
  await unpackLayer(context, archive, dir);
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
