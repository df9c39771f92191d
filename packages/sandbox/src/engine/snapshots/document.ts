// What stands in an exported snapshot beside its files: `snapshot.json`.
import { CaissonError, WorkspaceMode } from "@caisson/contract";
import type { SandboxRecord } from "../records.ts";
import type { SnapshotRecord } from "./record.ts";

export const documentName = "snapshot.json";

/** A form that a later Caisson may read differently has another number. */
const form = 1;

/** A document is never larger: of memory snapshots it has the commands and their little outputs. */
export const maxDocumentBytes = 16 << 20;

/** Of the sandbox only what its files belong to: what it was allowed stays where it was. */
type KeptSandbox = Pick<SandboxRecord, "id" | "driver" | "image" | "imageId" | "workspace" | "spec">;

export interface SnapshotDocument
  extends Pick<SnapshotRecord, "id" | "memory" | "host" | "processes" | "outputs"> {
  form: number;
  sandbox: KeptSandbox;
}

export function documentOf(record: SnapshotRecord): SnapshotDocument {
  const { id, memory, host, processes, outputs } = record;
  const { id: sandboxId, driver, image, imageId, workspace, spec } = record.sandbox;
  const sandbox = { id: sandboxId, driver, image, ...(imageId ? { imageId } : {}), workspace, spec };
  return { form, id, memory, ...(host ? { host } : {}), sandbox, processes, outputs };
}

/** What an id is made from, beside the files. */
export function wordsOf({
  sandbox,
  processes,
  outputs,
  memory,
  host,
}: Omit<SnapshotDocument, "id" | "form">) {
  const { spec, driver, image, workspace } = sandbox;
  return JSON.stringify([spec, driver, image, workspace, processes, ...(memory ? [outputs, host] : [])]);
}

export function invalid(why: string): CaissonError {
  return new CaissonError("SNAPSHOT_INVALID", why);
}

/** Reads a stranger's document: every value that is ever used is what it must be, or there is an error. */
export function readDocument(bytes: Uint8Array): SnapshotDocument {
  const all = object(parse(bytes), "document");
  if (all.form !== form) throw invalid("it is of a form that this Caisson does not know");
  const sandbox = object(all.sandbox, "sandbox");
  const { memory } = all;
  if (typeof memory !== "boolean") throw invalid("its document does not say what it holds");
  const processes = all.processes;
  if (!Array.isArray(processes)) throw invalid("its list of commands is none");
  const outputs = object(all.outputs, "outputs");
  if (!memory && (processes.length > 0 || Object.keys(outputs).length > 0))
    throw invalid("it has commands, but no memory in which they could run");
  return {
    form,
    id: text(all.id, "id", /^sn_[0-9a-f]{32}$/),
    memory,
    ...(memory ? { host: text(all.host, "host", /^[0-9a-f]{32}$/) } : {}),
    processes,
    outputs,
    sandbox: {
      id: text(sandbox.id, "sandbox", /^sb_[0-9a-z]{16}$/),
      driver: text(sandbox.driver, "driver", /^[a-z]{1,32}$/),
      // Printed to people and compared, never opened before somebody here has named it.
      image: text(sandbox.image, "image", /^[^\0-\x1f\x7f]{1,4096}$/),
      ...(sandbox.imageId === undefined
        ? {}
        : { imageId: text(sandbox.imageId, "image", /^(sha256:)?[0-9a-f]{64}$/) }),
      workspace: readWorkspace(object(sandbox.workspace, "project")),
      spec: object(sandbox.spec, "spec"),
    },
  };
}

function readWorkspace(workspace: Record<string, unknown>): SandboxRecord["workspace"] {
  const { dir, mode, transferred, withheld, ...rest } = workspace;
  if (Object.keys(rest).length > 0) throw invalid("its project has more to it than a project has");
  text(dir, "project", /^(|\/[^\0-\x1f\x7f]{1,4095})$/);
  if (!Object.values<unknown>(WorkspaceMode).includes(mode)) throw invalid("its project has no mode");
  if (transferred !== undefined && typeof transferred !== "boolean")
    throw invalid("its project is described wrongly");
  const isList = Array.isArray(withheld) && withheld.every((name) => typeof name === "string");
  if (withheld !== undefined && !isList) throw invalid("its project is described wrongly");
  // As it came, since its id is made from it.
  return workspace as SandboxRecord["workspace"];
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalid("its document is not JSON");
  }
}

function object(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw invalid(`its ${what} is none`);
}

function text(value: unknown, what: string, pattern: RegExp): string {
  if (typeof value === "string" && pattern.test(value)) return value;
  throw invalid(`its ${what} is none that Caisson writes`);
}
