import { randomInt } from "node:crypto";
import type { ApprovalState, DecisionScope } from "@caisson/contract";

/** What can be asked for. */
export const approvalKinds = ["network", "profile", "apply", "write-outside"] as const;
export type ApprovalKind = (typeof approvalKinds)[number];

export function isApprovalKind(word: unknown): word is ApprovalKind {
  return (approvalKinds as readonly unknown[]).includes(word);
}

/** Something that has to be asked for. */
export interface Question {
  kind: ApprovalKind;
  /** What exactly, as rules name it. Of `network`: `name:port`, canonical. */
  subject: string;
  /** Empty if there is no sandbox yet. */
  sandboxId: string;
  agent: string;
  /** Why it has to be asked for. */
  reason: string;
  /** Who asks: `sandbox:ID`, or the caller whose call waits. */
  by: string;
  /** Aborted when nobody waits for the answer any more. */
  signal: AbortSignal;
}

/** What became of a question. No answer is a refusal. */
export interface Answer {
  allow: boolean;
  scope: "once" | "sandbox" | "always";
  /** Who answered: an actor, `rule: …` or `limit: …`; empty if nobody did in time. */
  by: string;
}

/** What is kept of an approval, as JSON. Times are milliseconds since the epoch; 0: not yet. */
export interface ApprovalRecord {
  id: string;
  kind: ApprovalKind;
  subject: string;
  sandboxId: string;
  agent: string;
  reason: string;
  requestedBy: string;
  state: ApprovalState;
  requestedAt: number;
  expiresAt: number;
  decidedAt: number;
  decidedBy: string;
  decisionScope: DecisionScope;
}

const letters = "0123456789abcdefghjkmnpqrstvwxyz";

export function newApprovalId(): string {
  return `ap_${Array.from({ length: 10 }, () => letters[randomInt(letters.length)]).join("")}`;
}

const longestText = 512;

/** Words of a sandbox for people's eyes: short, and without anything that a terminal or a log would act upon. */
export function plainText(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, "\ufffd");
  return plain.length > longestText ? `${plain.slice(0, longestText - 1)}…` : plain;
}
