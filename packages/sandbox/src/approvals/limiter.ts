/** Bounds on how much a sandbox may ask a person. */
export interface AskingBounds {
  /** Requests of one sandbox that wait at once. */
  pending: number;
  /** New requests of one sandbox per minute. */
  perMinute: number;
  /** Requests of all sandboxes that wait at once. */
  pendingInAll: number;
}

interface Asker {
  tokens: number;
  /** Of the monotonic clock. */
  at: number;
  pending: number;
  /** It was told that it asks too much. */
  told: boolean;
}

/** Keeps an agent from flooding the person. */
export class AskLimiter {
  readonly #bounds: AskingBounds;
  readonly #now: () => number;
  readonly #askers = new Map<string, Asker>();
  #pending = 0;

  constructor(bounds: AskingBounds, now: () => number = () => performance.now()) {
    this.#bounds = bounds;
    this.#now = now;
  }

  /** A place for a new request, or the bound that it would break. `first`: for the first time in a while. */
  enter(asker: string): { leave(): void } | { refused: string; first: boolean } {
    const state = this.#state(asker);
    const refused = this.#broken(state);
    if (refused) {
      const first = !state.told;
      state.told = true;
      return { refused, first };
    }
    state.told = false;
    state.tokens--;
    state.pending++;
    this.#pending++;
    let left = false;
    return {
      leave: () => {
        if (left) return;
        left = true;
        state.pending--;
        this.#pending--;
      },
    };
  }

  forget(asker: string): void {
    this.#askers.delete(asker);
  }

  #broken(state: Asker): string | undefined {
    const { pending, perMinute, pendingInAll } = this.#bounds;
    if (state.pending >= pending) return `${pending} requests of one sandbox wait already`;
    if (this.#pending >= pendingInAll) return `${pendingInAll} requests wait already`;
    return state.tokens < 1 ? `a sandbox may ask ${perMinute} times a minute` : undefined;
  }

  #state(asker: string): Asker {
    const now = this.#now();
    const { perMinute } = this.#bounds;
    const state = this.#askers.get(asker) ?? { tokens: perMinute, at: now, pending: 0, told: false };
    state.tokens = Math.min(perMinute, state.tokens + ((now - state.at) / 60_000) * perMinute);
    state.at = now;
    this.#askers.set(asker, state);
    return state;
  }
}
