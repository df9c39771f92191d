export {
  type ApprovalKind,
  type ApprovalRule,
  type ApprovalSettings,
  approvalKinds,
  isApprovalKind,
  type KeptRules,
  parseRule,
  parseRules,
} from "./approvals/index.ts";
export { parseRule as checkNetworkRule } from "./egress/index.ts";
export type {
  AttachOptions,
  CommandInit,
  CreateOptions,
  EndOptions,
  Engine,
  EngineFiles,
  EngineNetwork,
  ListQuery,
  RunOptions,
  SpecInit,
} from "./engine/engine.ts";
export { isLocalDirectory } from "./engine/local-directories.ts";
export { openSandboxes, type SandboxesOptions } from "./engine/open.ts";
export type { AdmissionSettings, CompleteSpec, EngineSettings } from "./engine/parts.ts";
export { Profiles } from "./profiles/index.ts";
