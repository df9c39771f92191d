import type { Forward as ForwardMessage, Port as PortMessage } from "@caisson/contract";
import { toDate } from "./numbers.ts";

/** A port that a program in a sandbox listens on. */
export interface Port {
  port: number;
  /** `127.0.0.1`, `0.0.0.0` or `::` for instance. */
  address: string;
  /** Inside the sandbox, if it is known. */
  pid: number | undefined;
  command: string | undefined;
}

/** A port of the daemon's machine that leads into a sandbox. */
export interface ForwardInfo {
  id: string;
  sandboxId: string;
  /** In the sandbox. */
  port: number;
  kind: "tcp" | "preview";
  /** On 127.0.0.1 of the daemon's machine. */
  hostPort: number;
  /** Of a preview: its address; where it was opened, with the token that lets a browser in. */
  url: string | undefined;
  detached: boolean;
  openedAt: Date;
}

export function portFrom({ port, address, pid, command }: PortMessage): Port {
  return { port, address, pid: pid || undefined, command: command || undefined };
}

export function forwardFrom(forward: ForwardMessage): ForwardInfo {
  const { id, sandboxId, port, hostPort, detached } = forward;
  const kind = forward.kind === 2 ? "preview" : "tcp";
  const openedAt = toDate(forward.openedAt) ?? new Date(0);
  return { id, sandboxId, port, kind, hostPort, url: forward.url || undefined, detached, openedAt };
}
