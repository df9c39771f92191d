import { CaissonError } from "./errors.ts";
import { rules } from "./rules.ts";

/** Time and chance, so that tests need neither. */
export interface RetryClock {
  /** Milliseconds, never going back. */
  now(): number;
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** 0 ≤ x < 1. */
  random(): number;
}

export interface RetryOptions {
  clock?: RetryClock;
  /** The caller's own; once aborted, nothing is tried again. */
  signal?: AbortSignal | undefined;
  /** False: try once. See `mayRetry`. */
  retry: boolean;
  /** For one attempt. A call that waits for a command passes the command's time plus its grace, or
   * Infinity. Default: `retry.attempt_timeout_ms`. */
  attemptTimeoutMs?: number;
}

export interface Attempt {
  /** From 1. */
  number: number;
  /** Aborted with the caller's signal or at the end of the attempt's time. */
  signal: AbortSignal | undefined;
  /** What the attempt has left; Infinity for no bound. */
  timeoutMs: number;
}

/** Whether a call may be repeated when nobody knows if it was carried out. */
export function mayRetry(method: string, idempotencyKey: string): boolean {
  return idempotencyKey !== "" || !(rules.retry.only_with_key as readonly string[]).includes(method);
}

/** Milliseconds before attempt `number` (2 and up). */
export function waitBefore(number: number, random: number): number {
  const waits = rules.retry.waits_ms;
  const base = waits[Math.min(number - 2, waits.length - 1)]!;
  return Math.min(base * (1 + (random * 2 - 1) * rules.retry.jitter), rules.retry.wait_cap_ms);
}

/** Only what is unavailable, a broken transport included, is worth repeating. */
export function isRetryable(error: CaissonError): boolean {
  return (rules.retry.statuses as readonly string[]).includes(error.status);
}

/** Tries a call by the policy of the rules; throws the last error. */
export async function withRetries<T>(
  call: (attempt: Attempt) => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  const clock = options.clock ?? systemClock;
  const perAttempt = options.attemptTimeoutMs ?? rules.retry.attempt_timeout_ms;
  const end = clock.now() + Math.max(rules.retry.total_timeout_ms, perAttempt);
  for (let number = 1; ; number++) {
    try {
      return await attemptOnce(call, number, Math.min(perAttempt, end - clock.now()), options.signal);
    } catch (thrown) {
      const error = CaissonError.from(thrown);
      if (!options.retry || options.signal?.aborted || number >= rules.retry.attempts || !isRetryable(error))
        throw error;
      const wait = waitBefore(number + 1, clock.random());
      if (clock.now() + wait >= end) throw error;
      await clock.sleep(wait, options.signal);
    }
  }
}

/** An attempt that exceeds its time counts as a transport that does not answer. */
async function attemptOnce<T>(
  call: (attempt: Attempt) => Promise<T>,
  number: number,
  timeoutMs: number,
  outer: AbortSignal | undefined,
): Promise<T> {
  if (!Number.isFinite(timeoutMs)) return await call({ number, signal: outer, timeoutMs });
  const timeout = AbortSignal.timeout(Math.max(0, Math.ceil(timeoutMs)));
  const signal = outer === undefined ? timeout : AbortSignal.any([outer, timeout]);
  try {
    return await call({ number, signal, timeoutMs });
  } catch (thrown) {
    if (timeout.aborted && !outer?.aborted) {
      throw new CaissonError("UNAVAILABLE", "the daemon did not answer in time", { cause: thrown });
    }
    throw thrown;
  }
}

const systemClock: RetryClock = {
  now: () => performance.now(),
  random: Math.random,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, ms);
      signal?.addEventListener("abort", stop, { once: true });
    }),
};
