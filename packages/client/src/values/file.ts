import type { FileEvent as FileEventMessage, FileInfo as FileInfoMessage } from "@caisson/contract";
import { enumName, toDate, toNumber } from "./numbers.ts";
import { Output } from "./output.ts";

const types = ["unspecified", "file", "directory", "symlink", "special"] as const;

export type FileType = Exclude<(typeof types)[number], "unspecified">;

export interface FileInfo {
  /** As text; what is not UTF-8 shows as U+FFFD, `pathBytes` has it exactly. */
  path: string;
  pathBytes: Uint8Array;
  type: FileType;
  size: number;
  /** Permission bits. */
  mode: number;
  modifiedAt: Date | undefined;
  /** The target of a link, as text. */
  target: string;
  etag: string;
}

export interface FileChange {
  seq: number;
  /** `ready`: the watch is set. `overflow`: changes were missed, list again. */
  kind: "ready" | "created" | "modified" | "removed" | "overflow";
  path: string;
  pathBytes: Uint8Array;
  type: FileType;
}

export function fileInfoFrom(message: FileInfoMessage): FileInfo {
  return {
    path: new Output(message.path).text,
    pathBytes: message.path,
    type: enumName(types, message.type) as FileType,
    size: toNumber(message.size),
    mode: message.mode,
    modifiedAt: toDate(message.modifiedAt),
    target: new Output(message.target).text,
    etag: message.etag,
  };
}

export function fileChangeFrom({ seq, event }: FileEventMessage): FileChange | undefined {
  if (!event.case) return undefined;
  return {
    seq: toNumber(seq),
    kind: event.case,
    path: new Output(event.value.path).text,
    pathBytes: event.value.path,
    type: enumName(types, event.value.type) as FileType,
  };
}
