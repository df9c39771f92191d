import { type ErrorCode, rules, type StatusName, statusNumbers } from "./rules.ts";

/** The domain of google.rpc.ErrorInfo in every error. */
export const errorDomain = "caisson";

export interface ErrorOptions {
  /** Kept for the log, never sent. */
  cause?: unknown;
  /** Sent along: names of rules and mechanisms, never secrets or host paths. */
  metadata?: Record<string, string>;
}

/** The one error: a code of the closed table, its statuses, and a next step for the reader. */
export class CaissonError extends Error {
  override readonly name = "CaissonError";
  readonly code: ErrorCode;
  readonly metadata: Record<string, string>;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(truncateUtf8(message, rules.sizes.error_body_bytes), { cause: options.cause });
    this.code = code;
    this.metadata = options.metadata ?? {};
  }

  get status(): StatusName {
    return rules.errors[this.code].status;
  }

  get statusNumber(): number {
    return statusNumbers[this.status];
  }

  get httpStatus(): number {
    return rules.errors[this.code].http;
  }

  get nextStep(): string {
    return rules.errors[this.code].next;
  }

  /** Whatever was thrown, as an error of the table. What is unknown becomes INTERNAL without its words. */
  static from(thrown: unknown): CaissonError {
    if (thrown instanceof CaissonError) return thrown;
    if (thrown instanceof Error && (thrown.name === "AbortError" || thrown.name === "TimeoutError")) {
      const code = thrown.name === "AbortError" ? "CANCELLED" : "DEADLINE_EXCEEDED";
      return new CaissonError(
        code,
        code === "CANCELLED" ? "the call was cancelled" : "the call took too long",
        {
          cause: thrown,
        },
      );
    }
    if (errnoOf(thrown) === "ENOSPC")
      return new CaissonError("STORAGE_FULL", "the disk is full", { cause: thrown });
    return new CaissonError("INTERNAL", "something went wrong inside the daemon", { cause: thrown });
  }
}

/** Is this a code of the table? */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(rules.errors, code);
}

function errnoOf(thrown: unknown): string | undefined {
  return thrown instanceof Error ? (thrown as NodeJS.ErrnoException).code : undefined;
}

function truncateUtf8(text: string, maxBytes: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= maxBytes) return text;
  const cut = new TextDecoder().decode(bytes.subarray(0, maxBytes - 3), { stream: true });
  return `${cut}…`;
}
