export * from "./call.ts";
export * from "./errors.ts";
export * from "./gen/caisson/v1/approval_pb.ts";
export * from "./gen/caisson/v1/enforcement_pb.ts";
export * from "./gen/caisson/v1/event_pb.ts";
export * from "./gen/caisson/v1/file_pb.ts";
export * from "./gen/caisson/v1/image_pb.ts";
export * from "./gen/caisson/v1/limits_pb.ts";
export * from "./gen/caisson/v1/network_pb.ts";
export * from "./gen/caisson/v1/options_pb.ts";
export * from "./gen/caisson/v1/port_pb.ts";
export * from "./gen/caisson/v1/process_pb.ts";
export * from "./gen/caisson/v1/sandbox_pb.ts";
export * from "./gen/caisson/v1/secret_pb.ts";
export * from "./gen/caisson/v1/session_pb.ts";
export * from "./gen/caisson/v1/snapshot_pb.ts";
export * from "./gen/caisson/v1/system_pb.ts";
export * from "./gen/caisson/v1/workspace_pb.ts";
export { advertisedLimits } from "./limits.ts";
export { checkPath, resolvePath } from "./paths.ts";
export {
  type Attempt,
  isRetryable,
  mayRetry,
  type RetryClock,
  type RetryOptions,
  systemClock,
  waitAfter,
  waitBefore,
  withRetries,
} from "./retry.ts";
export * from "./rules.ts";
export {
  type AttributeKey,
  type Attributes,
  formatTraceparent,
  metricLabels,
  parseAttempt,
  parseTraceparent,
  spans,
  type TraceContext,
} from "./telemetry.ts";
