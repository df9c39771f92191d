import type { CallOptions } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";

/** One `fetch` with the call's signal and time limit; whatever goes wrong becomes an error of the table. */
export class Request implements AsyncDisposable {
  readonly #abort = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  #late = false;

  constructor({ signal, timeoutMs }: CallOptions) {
    this.#caller = signal;
    if (signal?.aborted) this.#abort.abort(signal.reason);
    signal?.addEventListener("abort", this.#stop, { once: true });
    if (timeoutMs !== undefined) {
      this.#timer = setTimeout(() => {
        this.#late = true;
        this.#stop();
      }, timeoutMs);
    }
  }

  fetch(url: string, init: RequestInit): Promise<Response> {
    // A redirect would carry the key elsewhere.
    return this.guard(fetch(url, { ...init, signal: this.#abort.signal, redirect: "error" }));
  }

  async guard<T>(working: Promise<T>): Promise<T> {
    try {
      return await working;
    } catch (cause) {
      if (this.#late) throw new CaissonError("DEADLINE_EXCEEDED", "the call took too long", { cause });
      if (this.#caller?.aborted) throw CaissonError.from(this.#caller.reason);
      throw new CaissonError("UNAVAILABLE", "the daemon is out of reach, or the connection to it was cut", {
        cause,
      });
    }
  }

  /** Leaving a response early closes it. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#stop);
    this.#abort.abort();
  }

  readonly #stop = (): void => this.#abort.abort();
}
