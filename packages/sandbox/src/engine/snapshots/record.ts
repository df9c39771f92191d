import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CaissonError, type Snapshot, SnapshotSchema } from "@caisson/contract";
import type { EngineContext } from "../context.ts";
import { kinds, type ProcessRecord, type SandboxRecord } from "../records.ts";

/** What is kept of a snapshot, as JSON; its files are in a directory of its own. */
export interface SnapshotRecord {
  id: string;
  template: string;
  memory: boolean;
  size: number;
  createdAt: number;
  labels: Record<string, string>;
  /** The sandbox that it was taken from, as it was, without its variables: they may hold secrets. */
  sandbox: SandboxRecord;
  /** Its commands, with `memory`. */
  processes: ProcessRecord[];
  /** What they have printed, where it is little enough to be kept with their records, by their ids. */
  outputs: Record<string, unknown>;
  /** With `memory`: what the machine depends on of the host that it was taken on. */
  host?: string;
  /** It came from outside: of what its sandbox was allowed nothing counts here. */
  imported?: boolean;
}

/** Files of a snapshot. */
export const parts = {
  /** Everything below the home directory, as the guest packs it. */
  home: "home.tar",
  /** The project's writable layer on the host, for drivers with mounts. */
  layer: "layer.tar",
  /** The project as it is inside, for drivers without. */
  project: "project.tar",
  /** A whole machine: devices and memory. */
  machine: "machine",
  /** What commands have printed, with `memory`. */
  output: "output",
} as const;

export function snapshotsDir(context: EngineContext): string {
  return `${context.home}/snapshots`;
}

export function snapshotDir(context: EngineContext, id: string): string {
  return `${snapshotsDir(context)}/${id}`;
}

/** By id or by a template's name. */
export function findSnapshot(context: EngineContext, name: string): SnapshotRecord {
  const found = /^sn_[0-9a-f]{32}$/.test(name)
    ? context.store.get<SnapshotRecord>(kinds.snapshot, name)
    : allSnapshots(context).find(({ template }) => template !== "" && template === name);
  if (!found) throw new CaissonError("SNAPSHOT_NOT_FOUND", "there is no such snapshot or template");
  return found;
}

export function allSnapshots(context: EngineContext): SnapshotRecord[] {
  const records = [...context.store.scan<SnapshotRecord>(kinds.snapshot)].map(([, record]) => record);
  return records.sort((a, b) => b.createdAt - a.createdAt || a.id.localeCompare(b.id));
}

export function toSnapshot(record: SnapshotRecord): Snapshot {
  const { id, template, memory, labels, sandbox, imported = false } = record;
  return create(SnapshotSchema, {
    id,
    template,
    memory,
    labels,
    imported,
    size: BigInt(record.size),
    sandboxId: sandbox.id,
    driver: sandbox.driver,
    createdAt: timestampFromMs(record.createdAt),
    workspace: { dir: sandbox.workspace.dir, mode: sandbox.workspace.mode },
  });
}
