import type { Snapshot as SnapshotMessage } from "@caisson/contract";
import { toDate, toNumber } from "./numbers.ts";
import { type Workspace, workspaceFrom } from "./sandbox.ts";

/** A sandbox that was kept. */
export interface Snapshot {
  /** Made from what it holds. */
  id: string;
  /** A name by which it serves as a template; empty for most. */
  template: string;
  sandboxId: string;
  driver: string;
  /** It holds the memory of a whole machine, running commands included; else files. */
  memory: boolean;
  /** Bytes on the host's disk. */
  size: number;
  createdAt: Date | undefined;
  workspace: Workspace | undefined;
  labels: Record<string, string>;
  /** It came in by an import. */
  imported: boolean;
}

export function snapshotFrom(message: SnapshotMessage): Snapshot {
  const { id, template, sandboxId, driver, memory, labels, imported } = message;
  return {
    id,
    template,
    sandboxId,
    driver,
    memory,
    size: toNumber(message.size),
    createdAt: toDate(message.createdAt),
    workspace: workspaceFrom(message.workspace),
    labels,
    imported,
  };
}
