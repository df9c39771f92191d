// Snapshots that came from outside: what is kept of them here, and what a sandbox is made from. They bring files, never a
// permission: whatever else a sandbox may do is asked for by whoever makes it.
import { clone, create } from "@bufbuild/protobuf";
import {
  CaissonError,
  type CallContext,
  SandboxSpecSchema,
  SandboxState,
  type Workspace,
  WorkspaceMode,
  WorkspaceSchema,
} from "@caisson/contract";
import { noLimits } from "../../limits/index.ts";
import type { EngineContext } from "../context.ts";
import type { SpecInit } from "../engine.ts";
import type { SandboxRecord } from "../records.ts";
import type { SnapshotDocument } from "./document.ts";
import type { ImportOptions } from "./import.ts";
import { checkMachine } from "./machine.ts";
import type { SnapshotRecord } from "./record.ts";

/** The record of one that was found good; refuses what this machine cannot make a sandbox from. */
export async function importedRecord(
  context: EngineContext,
  { document, dir, size }: { document: SnapshotDocument; dir: string; size: number },
  { template, labels, memory }: ImportOptions,
  { actor }: CallContext,
): Promise<SnapshotRecord> {
  const driver = context.parts.drivers.find(({ name }) => name === document.sandbox.driver);
  if (!driver)
    throw new CaissonError("NO_DRIVER", `it was taken with ${document.sandbox.driver}, which is not here`);
  const { usable, reason } = await driver.probe();
  if (!usable) throw new CaissonError("NO_DRIVER", `it was taken with ${driver.name}: ${reason}`);
  if (document.memory) await checkMachine(driver, document, dir, memory);
  return {
    id: document.id,
    template,
    memory: document.memory,
    size,
    createdAt: Date.now(),
    labels,
    sandbox: { ...nothing, ...document.sandbox, tier: driver.tier, actor },
    processes: document.processes,
    outputs: document.outputs,
    ...(document.host ? { host: document.host } : {}),
    imported: true,
  };
}

/** What a sandbox that is not here has. */
const nothing: Omit<SandboxRecord, "id" | "driver" | "image" | "workspace" | "spec" | "tier" | "actor"> = {
  ...{ place: "", session: "", state: SandboxState.ENDED, endReason: "", endMessage: "", profile: "" },
  ...{ workdir: "", labels: {}, agent: "", idleTtlS: 0, maxAgeS: 0, createdAt: 0, readyAt: 0, endedAt: 0 },
  ...{ limits: noLimits, seq: 0, enforcement: "", runs: "", lastProcess: 0, launch: undefined, bootId: "" },
};

/** What is asked for, with the snapshot's driver, image and project; these two must be here, or be named. */
export function specOfImported(context: EngineContext, snapshot: SnapshotRecord, init: SpecInit): SpecInit {
  const spec = clone(SandboxSpecSchema, create(SandboxSpecSchema, init));
  const workspace = workspaceOf(snapshot, spec.workspace);
  spec.driver = snapshot.sandbox.driver;
  spec.image = imageOf(context, snapshot, spec.image);
  if (workspace) spec.workspace = workspace;
  spec.snapshot = snapshot.id;
  return spec;
}

function imageOf(context: EngineContext, { sandbox }: SnapshotRecord, asked: string): string {
  const { image, imageId } = sandbox;
  if (image === "host" || asked !== "") return asked;
  const found = imageId === undefined ? undefined : context.images.find(imageId.replace(/^sha256:/, ""));
  if (found) return found.name;
  const words = `it was taken with the image ${image}, which is not here: import that, or name another one`;
  throw new CaissonError("IMAGE_NOT_FOUND", words);
}

function workspaceOf({ sandbox }: SnapshotRecord, asked: Workspace | undefined): Workspace | undefined {
  const { dir, mode } = sandbox.workspace;
  const named = asked?.dir ?? "";
  if (dir === "") {
    if (named === "") return undefined;
    throw new CaissonError(
      "INVALID_INPUT",
      "the snapshot was taken without a project: leave the workspace out",
    );
  }
  if (named === "") {
    const words = `it was imported, and taken with the project ${dir}: name the directory that is its project here`;
    throw new CaissonError("INVALID_INPUT", words);
  }
  const keeps = mode === WorkspaceMode.OVERLAY || mode === WorkspaceMode.COPY;
  const wanted = asked?.mode || (keeps ? mode : WorkspaceMode.UNSPECIFIED);
  if (keeps && wanted !== mode) {
    const words = `it was taken with its project as ${mode === WorkspaceMode.COPY ? "copy" : "overlay"}`;
    throw new CaissonError("INVALID_INPUT", `${words}: leave the mode out`);
  }
  if (!keeps && wanted === WorkspaceMode.UNSPECIFIED) {
    const words = "it was taken with its project bound, so that it holds nothing of it: name the mode too";
    throw new CaissonError("INVALID_INPUT", words);
  }
  return create(WorkspaceSchema, { dir: named, mode: wanted });
}
