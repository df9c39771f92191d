import { rules as generated } from "./gen/rules.ts";

/** The unwritten rules, written: spec/rules.json. */
export const rules = generated;

/** A code of the closed error table. */
export type ErrorCode = keyof typeof rules.errors;

/** A gRPC status that the table uses. */
export type StatusName = (typeof rules.errors)[ErrorCode]["status"];

/** Numbers of the gRPC statuses, as the protocols carry them. */
export const statusNumbers = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const satisfies Record<StatusName, number>;
