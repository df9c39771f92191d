import { CaissonError } from "@caisson/contract";

interface Bucket {
  tokens: number;
  at: number;
}

/** Callers remembered at once; beyond it those that were quiet longest are forgotten. */
const maxBuckets = 10_000;

/** A token bucket per caller: `perSecond` on average, twice that at once. */
export class RateLimit {
  readonly #perSecond: number;
  readonly #now: () => number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#now = now;
  }

  /** Takes one token, or throws RATE_LIMITED. */
  take(caller: string): void {
    const now = this.#now();
    const burst = this.#perSecond * 2;
    const bucket = this.#buckets.get(caller) ?? { tokens: burst, at: now };
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * this.#perSecond);
    bucket.at = now;
    // Last used, last in the map.
    this.#buckets.delete(caller);
    this.#buckets.set(caller, bucket);
    if (this.#buckets.size > maxBuckets) this.#buckets.delete(this.#buckets.keys().next().value!);
    if (bucket.tokens < 1) {
      throw new CaissonError("RATE_LIMITED", `more than ${this.#perSecond} calls per second`);
    }
    bucket.tokens--;
  }
}
