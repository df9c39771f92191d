export { CaissonError } from "@caisson/contract/errors";
export type { ErrorCode } from "@caisson/contract/rules";
export type { Approvals, DecideOptions, ListApprovalsOptions } from "./api/approvals.ts";
export type { Box } from "./api/box.ts";
export type { ExecOptions } from "./api/commands.ts";
export type { Events, SubscribeOptions } from "./api/events.ts";
export type { Content, Files, Listing, ReadOptions, WriteOptions } from "./api/files.ts";
export type { Images, ImportOptions, ImportProgress } from "./api/images.ts";
export type { CreateKeyOptions, Keys } from "./api/keys.ts";
export type { BoxNetwork, DecisionOptions, NetworkChange, NetworkLog, NetworkState } from "./api/network.ts";
export type { Forward, ForwardOptions, Ports, WaitForPortOptions } from "./api/ports.ts";
export type { Result } from "./api/result.ts";
export type { OutputEvent, OutputOptions, Run } from "./api/run.ts";
export type { ListOptions, Sandboxes } from "./api/sandboxes.ts";
export type { Secret, Secrets, SetSecretOptions } from "./api/secrets.ts";
export type { Session, Sessions } from "./api/sessions.ts";
export type { Snapshots, TakeOptions } from "./api/snapshots.ts";
export type { Stdin, StdinSource } from "./api/stdin.ts";
export type { Config, Health, System } from "./api/system.ts";
export type { Applied, ApplyOptions, Changes, DiffOptions, ExportOptions, Rebased } from "./api/workspace.ts";
export type { CallOptions, OnceOptions } from "./call/options.ts";
export type { Client, RunOptions } from "./client.ts";
export { type ConnectionOptions, connect } from "./connect.ts";
export type { Approval, ApprovalState, DecisionScope } from "./values/approval.ts";
export type { AppliedFile, Change } from "./values/change.ts";
export type { Enforcement, Limits, Mechanism } from "./values/enforcement.ts";
export type { AuditReport, Event } from "./values/event.ts";
export type { FileChange, FileInfo, FileType } from "./values/file.ts";
export type { Image } from "./values/image.ts";
export type { Network, NetworkDecision, NetworkLimits, NetworkMode } from "./values/network.ts";
export type { Output } from "./values/output.ts";
export type { ForwardInfo, Port } from "./values/port.ts";
export type { CommandOptions, Exit, Process, TerminalOptions, Usage } from "./values/process.ts";
export type {
  Sandbox,
  SandboxSpec,
  SandboxState,
  Stats,
  Tier,
  TierWish,
  Workspace,
  WorkspaceMode,
} from "./values/sandbox.ts";
export type { Snapshot } from "./values/snapshot.ts";
export type {
  Capabilities,
  Driver,
  Finding,
  FindingLevel,
  Key,
  Preset,
  Profile,
  Scope,
  UsageItem,
} from "./values/system.ts";
