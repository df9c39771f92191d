/** Bounds on a sandbox's connections. */
export interface EgressLimits {
  /** Open at once. */
  connections: number;
  /** New ones per second; twice as many in a burst. */
  connectionsPerSecond: number;
  /** In both directions together, over the sandbox's life; 0 for no bound. */
  bytes: number;
  /** Without a byte in either direction. */
  idleTimeoutMs: number;
  /** From the name to an open connection. */
  connectTimeoutMs: number;
}

export const defaultLimits: Readonly<EgressLimits> = {
  connections: 1024,
  connectionsPerSecond: 200,
  bytes: 0,
  idleTimeoutMs: 600_000,
  connectTimeoutMs: 15_000,
};

/** Lets so many through per second, and twice as many after a pause. */
export class Rate {
  #tokens: number | undefined;
  #at = 0;

  /** May one more pass now? */
  take(perSecond: number, now = performance.now()): boolean {
    const most = perSecond * 2;
    this.#tokens = Math.min(most, (this.#tokens ?? most) + ((now - this.#at) / 1000) * perSecond);
    this.#at = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
