import type { Answer, ApprovalRecord } from "./approval.ts";

const nobody: Answer = { allow: false, scope: "once", by: "" };

/** A request that waits, and everybody who waits for its answer. */
export class Pending {
  readonly record: ApprovalRecord;
  /** Identical requests have the same. */
  readonly key: string;
  /** An answer is being written down; there is no other one. */
  deciding = false;
  readonly #answered = Promise.withResolvers<Answer>();
  readonly #abandoned: () => void;
  #waiting = 0;

  /** `abandoned` is called when nobody waits any more. */
  constructor(record: ApprovalRecord, key: string, abandoned: () => void) {
    this.record = record;
    this.key = key;
    this.#abandoned = abandoned;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Resolves with the answer; with a refusal when whoever waits has gone. */
  async wait(signal: AbortSignal): Promise<Answer> {
    const gone = Promise.withResolvers<Answer>();
    const leave = () => gone.resolve(nobody);
    this.#waiting++;
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    try {
      return await Promise.race([this.#answered.promise, gone.promise]);
    } finally {
      signal.removeEventListener("abort", leave);
      if (--this.#waiting === 0) this.#abandoned();
    }
  }

  settle(answer: Answer): void {
    this.#answered.resolve(answer);
  }
}
