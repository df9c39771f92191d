import type { ApprovalKind } from "./approval.ts";
import type { AskingBounds } from "./limiter.ts";
import type { ApprovalRule } from "./rules.ts";

/** Where answers for always are kept: outside every project. */
export interface KeptRules {
  /** As they are now; another process, or the user's editor, may have changed them. */
  read(): Promise<readonly ApprovalRule[]>;
  /** Adds one rule, as text. */
  add(rule: string): Promise<void>;
}

/** What the configuration and the machine's policy decide about approvals. */
export interface ApprovalSettings {
  /** How long a request waits. Default: 60 000 ms. */
  timeoutMs: number;
  /** What is asked for; anything else is refused without asking. Default: `network`. */
  kinds: readonly ApprovalKind[];
  /** Rules of the configuration. */
  rules: readonly ApprovalRule[];
  /** Rules of the machine's policy; only those that deny. */
  forbidden: readonly ApprovalRule[];
  /** May an answer hold for always? */
  always: boolean;
  bounds: AskingBounds;
  kept?: KeptRules | undefined;
}

export const defaultApprovalSettings: ApprovalSettings = {
  timeoutMs: 60_000,
  kinds: ["network"],
  rules: [],
  forbidden: [],
  always: true,
  bounds: { pending: 16, perMinute: 30, pendingInAll: 256 },
};
