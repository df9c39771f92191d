import { CaissonError } from "@caisson/contract/errors";
import { isRetryable, waitBefore } from "@caisson/contract/retry";
import { rules } from "@caisson/contract/rules";

const { retry } = rules;

/** Milliseconds for one attempt, and for all of them. */
export const attemptTimeout: number = retry.attempt_timeout_ms;
export const totalTimeout: number = retry.total_timeout_ms;

/** Milliseconds to wait after so many failures, counted from 1; undefined when it is over. */
export function waitAfter(failures: number, error: CaissonError): number | undefined {
  if (!isRetryable(error) || failures >= retry.attempts) return undefined;
  return waitBefore(failures + 1, Math.random());
}

/** Resolves after some milliseconds; rejects when aborted. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(CaissonError.from(signal.reason));
    const timer = setTimeout(done, milliseconds);
    const aborted = () => {
      clearTimeout(timer);
      reject(CaissonError.from(signal!.reason));
    };
    function done() {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
