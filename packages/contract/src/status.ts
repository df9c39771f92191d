import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Any, anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { CaissonError, errorDomain, isErrorCode } from "./errors.ts";
import { type ErrorInfo, ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.ts";
import { type Status, StatusSchema } from "./gen/google/rpc/status_pb.ts";
import { type ErrorCode, type StatusName, statusNumbers } from "./rules.ts";

export { ErrorInfoSchema };

/** The keys that every error's ErrorInfo carries beside the error's own metadata. */
export const errorMetadata = { nextStep: "next_step", requestId: "request_id" } as const;

/** What ErrorInfo says about an error. */
export function toErrorInfo(error: CaissonError, requestId?: string): ErrorInfo {
  const metadata: Record<string, string> = { ...error.metadata, [errorMetadata.nextStep]: error.nextStep };
  if (requestId !== undefined) metadata[errorMetadata.requestId] = requestId;
  return create(ErrorInfoSchema, { reason: error.code, domain: errorDomain, metadata });
}

/** An error as every transport carries it. */
export function toStatus(error: CaissonError, requestId?: string): Status {
  return create(StatusSchema, {
    code: error.statusNumber,
    message: error.message,
    details: [anyPack(ErrorInfoSchema, toErrorInfo(error, requestId))],
  });
}

export function encodeStatus(error: CaissonError, requestId?: string): Uint8Array {
  return toBinary(StatusSchema, toStatus(error, requestId));
}

/** The error that a server sent. A server that is not ours, or newer, is judged by its status. */
export function fromStatus(status: Status): CaissonError {
  return fromDetails(status.code, status.message, status.details.map(unpackErrorInfo));
}

export function decodeStatus(bytes: Uint8Array): CaissonError {
  let status: Status;
  try {
    status = fromBinary(StatusSchema, bytes);
  } catch (cause) {
    return new CaissonError("INTERNAL", "the server's error could not be read", { cause });
  }
  return fromStatus(status);
}

/** The same for a transport that has taken the status apart already. */
export function fromDetails(
  statusNumber: number,
  message: string,
  details: readonly (ErrorInfo | undefined)[],
): CaissonError {
  const info = details.find((detail) => detail?.domain === errorDomain);
  const code = info !== undefined && isErrorCode(info.reason) ? info.reason : codeOfStatus(statusNumber);
  return new CaissonError(code, message, { metadata: { ...info?.metadata } });
}

function unpackErrorInfo(detail: Any): ErrorInfo | undefined {
  try {
    return anyUnpack(detail, ErrorInfoSchema);
  } catch {
    return undefined;
  }
}

/** The most general code of each status. */
const generalCodes: Record<StatusName, ErrorCode> = {
  CANCELLED: "CANCELLED",
  INVALID_ARGUMENT: "INVALID_INPUT",
  DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
  NOT_FOUND: "NOT_FOUND",
  ALREADY_EXISTS: "IDEMPOTENCY_CONFLICT",
  PERMISSION_DENIED: "FORBIDDEN",
  RESOURCE_EXHAUSTED: "RATE_LIMITED",
  FAILED_PRECONDITION: "NOT_ENFORCEABLE",
  ABORTED: "ETAG_MISMATCH",
  UNIMPLEMENTED: "METHOD_UNKNOWN",
  INTERNAL: "INTERNAL",
  UNAVAILABLE: "UNAVAILABLE",
  DATA_LOSS: "CORRUPT_LOG",
  UNAUTHENTICATED: "UNAUTHENTICATED",
};

function codeOfStatus(statusNumber: number): ErrorCode {
  for (const [name, number] of Object.entries(statusNumbers)) {
    if (number === statusNumber) return generalCodes[name as StatusName];
  }
  return "INTERNAL";
}
