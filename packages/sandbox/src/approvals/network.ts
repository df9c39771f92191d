import type { Ask } from "../egress/seams.ts";
import type { Approvals } from "./approvals.ts";

/** Asks about destinations that no rule of a sandbox allows or denies. */
export function networkAsk(approvals: Approvals, agentOf: (sandboxId: string) => string): Ask {
  return ({ sandboxId, name, port, reason, signal }) =>
    approvals.ask({
      kind: "network",
      subject: name.includes(":") ? `[${name}]:${port}` : `${name}:${port}`,
      sandboxId,
      agent: agentOf(sandboxId),
      reason,
      by: `sandbox:${sandboxId}`,
      signal,
    });
}
