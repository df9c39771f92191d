import type { Probe } from "./driver.ts";

/** What trying a driver gave: whether it is usable, and if so what it stands on. */
export interface Tried<Ground> {
  probe: Probe;
  ground?: Ground;
}

/** Tries a driver once. A good answer holds for the daemon's life; a bad one may have been mended by the next time. */
export class CachedProbe<Ground> {
  readonly #attempt: () => Promise<Tried<Ground>>;
  #trying: Promise<Tried<Ground>> | undefined;

  constructor(attempt: () => Promise<Tried<Ground>>) {
    this.#attempt = attempt;
  }

  get(): Promise<Tried<Ground>> {
    this.#trying ??= this.#attempt().then(
      (result) => {
        if (!result.probe.usable) this.#trying = undefined;
        return result;
      },
      (thrown) => {
        this.#trying = undefined;
        throw thrown;
      },
    );
    return this.#trying;
  }

  /** What it stood on may be gone: the next one looks again. */
  forget(): void {
    this.#trying = undefined;
  }
}
