export {
  type Answer,
  type ApprovalKind,
  type ApprovalRecord,
  approvalKinds,
  isApprovalKind,
  type Question,
} from "./approval.ts";
export { Approvals, type Decision } from "./approvals.ts";
export { toApproval } from "./message.ts";
export { type ApprovalRule, matches, parseRule, parseRules, ruleFor } from "./rules.ts";
export { type ApprovalSettings, defaultApprovalSettings, type KeptRules } from "./settings.ts";
