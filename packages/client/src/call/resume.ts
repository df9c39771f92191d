import { CaissonError } from "@caisson/contract/errors";
import { systemClock, waitAfter } from "@caisson/contract/retry";

export interface Resumption<T> {
  /** Opens the stream after a position; called again after each cut. */
  open: () => AsyncIterable<T>;
  /** Notes the position of what arrived; false ends the stream for good. */
  took: (item: T) => boolean;
  /** The stream may only end by `took`: an end before that counts as a cut. */
  endless: boolean;
  signal?: AbortSignal | undefined;
}

/** One stream out of many attempts at it. The count of failures starts anew whenever something arrives. */
export async function* resuming<T>({ open, took, endless, signal }: Resumption<T>): AsyncGenerator<T> {
  for (let failures = 0; ; ) {
    let more = true;
    try {
      for await (const item of open()) {
        failures = 0;
        more = took(item);
        yield item;
        if (!more) return;
      }
      if (!endless) return;
      throw new CaissonError("UNAVAILABLE", "the server ended the stream early");
    } catch (thrown) {
      const error = CaissonError.from(thrown);
      const wait = waitAfter(++failures, error, systemClock.random());
      if (wait === undefined) throw error;
      await systemClock.sleep(wait, signal);
    }
  }
}
