/** Knows whether anybody is waiting for work that a launch in the background would delay. */
export class Gate {
  #working = 0;
  #lastLeft = Number.NEGATIVE_INFINITY;

  /** Work begins; call the result when it is done. */
  enter(): () => void {
    this.#working += 1;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#working -= 1;
      this.#lastLeft = performance.now();
    };
  }

  /** Resolves after `quietMs` without work, or with false after `atMostMs`: steady work must not starve the pool. */
  async quiet(quietMs: number, atMostMs: number): Promise<boolean> {
    const deadline = performance.now() + atMostMs;
    for (;;) {
      const now = performance.now();
      const wait = this.#working > 0 ? quietMs : this.#lastLeft + quietMs - now;
      if (wait <= 0) return true;
      if (now >= deadline) return false;
      await new Promise((resolve) => setTimeout(resolve, Math.min(wait, deadline - now)).unref());
    }
  }
}
