import type { AppliedFile as AppliedMessage, WorkspaceChange as ChangeMessage } from "@caisson/contract";
import { enumName, toNumber } from "./numbers.ts";
import { Output } from "./output.ts";

const kinds = ["unspecified", "added", "modified", "deleted", "renamed", "mode"] as const;
const outcomes = ["unspecified", "applied", "merged", "conflict", "withheld", "refused"] as const;

/** One changed file, directory or link of the project. */
export interface Change {
  /** Relative to the project, as text; `pathBytes` has it exactly. */
  path: string;
  pathBytes: Uint8Array;
  kind: Exclude<(typeof kinds)[number], "unspecified">;
  /** Of a rename: where it was. */
  from: string;
  type: string;
  oldMode: number;
  newMode: number;
  oldSize: number;
  newSize: number;
  binary: boolean;
  /** The host changed the file after the sandbox attached the project. */
  conflict: boolean;
  /** Why apply leaves it out unless it is named. */
  withheld: string;
  /** A unified diff, where it was asked for. */
  patch: string;
  linesAdded: number;
  linesRemoved: number;
}

/** What became of one change. */
export interface AppliedFile {
  path: string;
  outcome: Exclude<(typeof outcomes)[number], "unspecified">;
  reason: string;
}

export function changeFrom(message: ChangeMessage): Change {
  const { $typeName: _type, $unknown: _unknown, ...rest } = message;
  return {
    ...rest,
    path: new Output(message.path).text,
    pathBytes: message.path,
    from: new Output(message.from).text,
    kind: enumName(kinds, message.kind) as Change["kind"],
    oldSize: toNumber(message.oldSize),
    newSize: toNumber(message.newSize),
  };
}

export function appliedFrom(message: AppliedMessage): AppliedFile {
  return {
    path: new Output(message.path).text,
    outcome: enumName(outcomes, message.outcome) as AppliedFile["outcome"],
    reason: message.reason,
  };
}
