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
  attemptTimeoutMs?: number | undefined;
}

export interface Attempt {
  /** From 1. */
  number: number;
  /** What the attempt may take: whoever carries it out fails with DEADLINE_EXCEEDED then. Infinity for no bound. */
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

/** Milliseconds to wait after so many failures, counted from 1; undefined when it is over. */
export function waitAfter(failures: number, error: CaissonError, random: number): number | undefined {
  if (failures >= rules.retry.attempts || !isRetryable(error)) return undefined;
  return waitBefore(failures + 1, random);
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
      return await call({ number, timeoutMs: Math.min(perAttempt, end - clock.now()) });
    } catch (thrown) {
      const error = asCut(CaissonError.from(thrown), perAttempt, options.signal);
      const wait =
        options.retry && !options.signal?.aborted ? waitAfter(number, error, clock.random()) : undefined;
      if (wait === undefined || clock.now() + wait >= end) throw error;
      await clock.sleep(wait, options.signal);
    }
  }
}

/** An attempt that exceeded its own time has heard nothing, which is what a cut looks like. */
function asCut(error: CaissonError, perAttempt: number, signal: AbortSignal | undefined): CaissonError {
  if (error.code !== "DEADLINE_EXCEEDED" || !Number.isFinite(perAttempt) || signal?.aborted) return error;
  return new CaissonError("UNAVAILABLE", "the daemon did not answer in time", { cause: error });
}

export const systemClock: RetryClock = {
  now: () => performance.now(),
  random: Math.random,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        reject(CaissonError.from(signal!.reason));
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, ms);
      if (signal?.aborted) stop();
      else signal?.addEventListener("abort", stop, { once: true });
    }),
};
