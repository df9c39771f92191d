import { CaissonError, type ErrorCode, isErrorCode } from "@caisson/contract";
import type { Failure } from "@caisson/contract/link";

/** Codes that speak of the daemon: a guest has no say in them. */
const notForGuests: ReadonlySet<ErrorCode> = new Set([
  "SANDBOX_NOT_FOUND",
  "SANDBOX_ENDED",
  "SESSION_NOT_FOUND",
  "SESSION_CONFLICT",
  "IDEMPOTENCY_CONFLICT",
  "NO_DRIVER",
  "RATE_LIMITED",
  "UNAUTHENTICATED",
  "FORBIDDEN",
  "FOREIGN_ORIGIN",
  "POLICY_FORBIDS",
  "PROJECT_NOT_TRUSTED",
  "CONFIG_INVALID",
  "STORAGE_FAILED",
  "CORRUPT_LOG",
]);

/** The connection ended while the call was under way; what became of it is not known. */
export class LinkCut extends CaissonError {
  constructor(message = "the link to the sandbox was cut; it is being opened again") {
    super("UNAVAILABLE", message);
  }
}

/** What a guest says went wrong, as an error of the table. Its words are bounded and made harmless. */
export function errorOfFailure(failure: Failure): CaissonError {
  const message = printable(failure.message) || "the guest gave no reason";
  if (!isErrorCode(failure.code) || notForGuests.has(failure.code))
    return new CaissonError("INTERNAL", message);
  const metadata: Record<string, string> = failure.errno === 0 ? {} : { errno: String(failure.errno) };
  return new CaissonError(failure.code, message, { metadata });
}

/** Control and direction-changing characters replaced; long texts are cut. */
export function printable(text: string): string {
  return text.slice(0, 1024).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, "\u{fffd}");
}
