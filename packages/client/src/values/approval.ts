import type { Approval as ApprovalMessage, DecisionScope as DecisionScopeNumber } from "@caisson/contract";
import { enumName, toDate } from "./numbers.ts";

const states = ["unspecified", "pending", "allowed", "denied", "expired"] as const;
const scopes = ["unspecified", "once", "sandbox", "always"] as const;

export type ApprovalState = Exclude<(typeof states)[number], "unspecified">;
/** How far an answer reaches. */
export type DecisionScope = Exclude<(typeof scopes)[number], "unspecified">;

/** A request that waits for an answer, or has it. */
export interface Approval {
  id: string;
  /** `network`, `profile`, `apply`. */
  kind: string;
  /** What exactly: `example.com:443` for `network`. */
  subject: string;
  /** The sandbox that asks; empty if it is not there yet. */
  sandboxId: string;
  agent: string;
  reason: string;
  state: ApprovalState;
  requestedBy: string;
  requestedAt: Date | undefined;
  /** When it is refused if nobody answers. */
  expiresAt: Date | undefined;
  decidedAt: Date | undefined;
  decidedBy: string;
  decisionScope: DecisionScope | undefined;
  /** Requests that wait for this answer. */
  waiting: number;
}

export function approvalFrom(message: ApprovalMessage): Approval {
  const { decisionScope } = message;
  return {
    id: message.id,
    kind: message.kind,
    subject: message.subject,
    sandboxId: message.sandboxId,
    agent: message.agent,
    reason: message.reason,
    state: enumName(states, message.state) as ApprovalState,
    requestedBy: message.requestedBy,
    requestedAt: toDate(message.requestedAt),
    expiresAt: toDate(message.expiresAt),
    decidedAt: toDate(message.decidedAt),
    decidedBy: message.decidedBy,
    decisionScope: decisionScope === 0 ? undefined : (enumName(scopes, decisionScope) as DecisionScope),
    waiting: message.waiting,
  };
}

export function decisionScopeNumber(scope: DecisionScope): DecisionScopeNumber {
  return scopes.indexOf(scope) as DecisionScopeNumber;
}
