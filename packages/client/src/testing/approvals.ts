import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import {
  type Approval,
  ApprovalSchema,
  ApprovalService,
  ApprovalState,
  CaissonError,
  DecisionScope,
  type ServedService,
  serve,
} from "@caisson/contract";

/** Requests for approval that a test makes and a client answers. */
export class FakeApprovals {
  readonly list: Approval[] = [];
  readonly #tell: (type: string, sandboxId: string, data: Record<string, string>) => void;

  constructor(tell: (type: string, sandboxId: string, data: Record<string, string>) => void) {
    this.#tell = tell;
  }

  /** Somebody asks. */
  ask(init: MessageInitShape<typeof ApprovalSchema>): Approval {
    const id = `ap_${String(this.list.length + 1).padStart(10, "0")}`;
    const state = ApprovalState.PENDING;
    const approval = create(ApprovalSchema, { id, state, requestedAt: timestampNow(), waiting: 1, ...init });
    this.list.push(approval);
    this.#tell("approval.requested", approval.sandboxId, { id });
    return approval;
  }

  get(id: string): Approval {
    const found = this.list.find((approval) => approval.id === id);
    if (!found) throw new CaissonError("APPROVAL_NOT_FOUND", "there is no such approval");
    return found;
  }

  /** No answer came. */
  expire(id: string): void {
    const approval = this.get(id);
    approval.state = ApprovalState.EXPIRED;
    this.#tell("approval.expired", approval.sandboxId, { id });
  }

  decide(id: string, allow: boolean, scope: DecisionScope): Approval {
    const approval = this.get(id);
    if (approval.state !== ApprovalState.PENDING)
      throw new CaissonError("APPROVAL_DECIDED", "nobody waits for this answer");
    approval.state = allow ? ApprovalState.ALLOWED : ApprovalState.DENIED;
    approval.decisionScope = scope;
    approval.decidedBy = "uid:0";
    this.#tell("approval.decided", approval.sandboxId, { id });
    return approval;
  }
}

export function approvalService(approvals: FakeApprovals): ServedService {
  return serve(ApprovalService, {
    listApprovals: async ({ sandboxId, all }) => ({
      approvals: approvals.list
        .filter(({ state }) => all || state === ApprovalState.PENDING)
        .filter((approval) => sandboxId === "" || approval.sandboxId === sandboxId)
        .reverse(),
    }),
    getApproval: async ({ approvalId }) => ({ approval: approvals.get(approvalId) }),
    decideApproval: async ({ approvalId, allow, decisionScope }) => ({
      approval: approvals.decide(approvalId, allow, decisionScope || DecisionScope.ONCE),
    }),
  });
}
