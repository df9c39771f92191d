/** How fast recent use is forgotten, in milliseconds. */
const memoryMs = 10_000;
/** A pool is to last so long at the recent rate, in milliseconds: some launches one after the other. */
const coverMs = 500;

/** How often sandboxes of a kind have been taken lately, and so how many should wait. */
export class Demand {
  /** Takes that count, each fading with time. */
  #weight = 0;
  #at: number;
  #lastTake: number;

  constructor(now: number) {
    this.#at = now;
    this.#lastTake = now;
  }

  get lastTake(): number {
    return this.#lastTake;
  }

  took(now: number): void {
    this.#fade(now);
    this.#weight += 1;
    this.#lastTake = now;
  }

  /** Takes per second, recent ones counting most. */
  rate(now: number): number {
    this.#fade(now);
    return (this.#weight * 1000) / memoryMs;
  }

  /** How many should wait, within bounds. */
  target(now: number, bounds: { min: number; max: number }): number {
    const wanted = Math.ceil((this.rate(now) * coverMs) / 1000);
    return Math.min(bounds.max, Math.max(bounds.min, wanted));
  }

  #fade(now: number): void {
    const elapsed = Math.max(0, now - this.#at);
    this.#weight *= Math.exp(-elapsed / memoryMs);
    this.#at = now;
  }
}
