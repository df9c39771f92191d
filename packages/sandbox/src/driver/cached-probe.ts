import { setTimeout as sleep } from "node:timers/promises";
import type { Probe } from "./driver.ts";

/** What trying a driver gave: whether it is usable, and if so what it stands on. */
export interface Tried<Ground> {
  probe: Probe;
  ground?: Ground;
}

/** Trials that run: each makes something on the host, and takes it away when it is over. */
const running = new Set<Promise<unknown>>();

/** A trial that hangs is not waited for: who stops a daemon waits, too. */
const patienceMs = 5000;

/** Resolves when what is being tried is over, so that a daemon that stops leaves nothing of it. */
export async function trialsOver(): Promise<void> {
  if (running.size === 0) return;
  await Promise.race([Promise.allSettled(running), sleep(patienceMs, undefined, { ref: false })]);
}

/** Tries a driver once. A good answer holds for the daemon's life; a bad one may have been mended by the next time. */
export class CachedProbe<Ground> {
  readonly #attempt: () => Promise<Tried<Ground>>;
  #trying: Promise<Tried<Ground>> | undefined;

  constructor(attempt: () => Promise<Tried<Ground>>) {
    this.#attempt = attempt;
  }

  get(): Promise<Tried<Ground>> {
    this.#trying ??= this.#try().then(
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

  async #try(): Promise<Tried<Ground>> {
    const attempt = this.#attempt();
    running.add(attempt);
    try {
      return await attempt;
    } finally {
      running.delete(attempt);
    }
  }

  /** What it stood on may be gone: the next one looks again. */
  forget(): void {
    this.#trying = undefined;
  }
}
