/** What every call takes. */
export interface CallOptions {
  /** Ends the call; for a deadline, `AbortSignal.timeout(ms)`. */
  signal?: AbortSignal | undefined;
  /** W3C trace context of the caller, such as `00-…-…-01`. Default: what `connect` was given. */
  traceparent?: string | undefined;
}

/** What calls that must never happen twice take as well. */
export interface OnceOptions extends CallOptions {
  /** Makes a repeated call return the first one's result. Default: a fresh one, so that a retry is safe. */
  idempotencyKey?: string | undefined;
}
