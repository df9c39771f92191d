import type { JsonObject } from "@bufbuild/protobuf";
import type { Event as EventMessage, VerifyAuditResponse } from "@caisson/contract";
import { toDate, toNumber } from "./numbers.ts";

/** One entry of the numbered log. */
export interface Event {
  seq: number;
  at: Date | undefined;
  /** Dotted, such as `sandbox.ready`. */
  type: string;
  actor: string;
  sandboxId: string;
  processId: string;
  data: JsonObject;
  hash: Uint8Array;
}

export interface AuditReport {
  intact: boolean;
  checked: number;
  brokenAt: number;
  reason: string;
  /** The hash of the last event checked, to be kept elsewhere. */
  head: Uint8Array;
}

export function eventFrom(message: EventMessage): Event {
  return {
    seq: toNumber(message.seq),
    at: toDate(message.at),
    type: message.type,
    actor: message.actor,
    sandboxId: message.sandboxId,
    processId: message.processId,
    data: message.data ?? {},
    hash: message.hash,
  };
}

export function auditReportFrom(message: VerifyAuditResponse): AuditReport {
  return {
    intact: message.intact,
    checked: toNumber(message.checked),
    brokenAt: toNumber(message.brokenAt),
    reason: message.reason,
    head: message.head,
  };
}
