import { ApprovalService, CaissonError, DecisionScope, type ServedService, serve } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { checkPageSize, checkSandboxId, invalid } from "./check.ts";
import type { Repeats } from "./repeats.ts";

export function approvalService({ approvals }: Engine, repeats: Repeats): ServedService {
  return serve(ApprovalService, {
    async listApprovals({ sandboxId, all, pageSize, pageToken }) {
      return approvals.list({
        sandboxId: sandboxId === "" ? "" : checkSandboxId(sandboxId),
        all,
        pageSize: checkPageSize(pageSize),
        pageToken,
      });
    },
    async getApproval(request) {
      return { approval: approvals.get(checkApprovalId(request.approvalId)) };
    },
    async decideApproval(request, call) {
      const id = checkApprovalId(request.approvalId);
      const { allow, decisionScope: scope } = request;
      if (!Object.values<number>(DecisionScope).includes(scope)) throw invalid("`decision_scope` is none");
      return await repeats.once(ApprovalService.method.decideApproval, request, call, async () => ({
        approval: await approvals.decide(id, { allow, scope }, call),
      }));
    },
  });
}

function checkApprovalId(id: string): string {
  if (id === "") throw invalid("`approval_id` is missing");
  if (!/^ap_[0-9a-z]{10}$/.test(id))
    throw new CaissonError("APPROVAL_NOT_FOUND", "there is no such approval");
  return id;
}
