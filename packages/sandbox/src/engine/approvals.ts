import { CaissonError } from "@caisson/contract";
import { type ApprovalRecord, toApproval } from "../approvals/index.ts";
import type { EngineContext } from "./context.ts";
import type { EngineApprovals } from "./engine.ts";
import { sandboxRecord } from "./find.ts";

/** Approvals as callers see them: lists in pages, answers with their actor. */
export function engineApprovals(context: EngineContext): EngineApprovals {
  const { approvals } = context;
  return {
    list({ sandboxId, all, pageSize, pageToken }) {
      const id = sandboxId === "" ? "" : sandboxRecord(context, sandboxId).id;
      const found = approvals.list({ sandboxId: id, all });
      const rest = pageToken === "" ? found : behind(found, pageToken);
      const page = rest.slice(0, pageSize);
      const last = page.at(-1)?.record;
      return {
        approvals: page.map(toApproval),
        nextPageToken: last && rest.length > pageSize ? `${last.requestedAt}.${last.id}` : "",
      };
    },
    get: (id) => toApproval(approvals.get(id)),
    async decide(id, decision, call) {
      await approvals.decide(id, decision, call);
      return toApproval(approvals.get(id));
    },
  };
}

/** What follows the one that the token names, also if that is not in the list any more. */
function behind<T extends { record: ApprovalRecord }>(found: readonly T[], token: string): readonly T[] {
  const match = /^(\d{1,16})\.(ap_[0-9a-z]{10})$/.exec(token);
  if (!match) throw new CaissonError("INVALID_INPUT", "`page_token` is not one that this server gave");
  const index = found.findIndex(({ record }) => record.id === match[2]);
  if (index >= 0) return found.slice(index + 1);
  return found.filter(({ record }) => record.requestedAt < Number(match[1]));
}
