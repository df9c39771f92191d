import type { MessageInitShape } from "@bufbuild/protobuf";
import type { InvokeResponseSchema } from "@caisson/contract/terminal";

export type Response = MessageInitShape<typeof InvokeResponseSchema>;

/** Bytes that may wait for the launcher before whoever writes has to. */
const maxWaitingBytes = 256 * 1024;

/** What goes to the launcher, in order, taken as fast as the socket takes it. */
export class Outbox implements AsyncIterableIterator<Response> {
  readonly #waiting: Response[] = [];
  #waitingBytes = 0;
  #taker: ((result: IteratorResult<Response>) => void) | undefined;
  #room: PromiseWithResolvers<void> | undefined;
  #ended = false;
  readonly #whenDone: (() => void)[] = [];

  /** Returns a promise to wait for when there is too much already. */
  send(output: NonNullable<Response["output"]>, bytes = 0): Promise<void> | undefined {
    if (this.#ended) return undefined;
    const taker = this.#taker;
    if (taker) {
      this.#taker = undefined;
      taker({ done: false, value: { output } });
      return undefined;
    }
    this.#waiting.push({ output });
    this.#waitingBytes += bytes;
    if (this.#waitingBytes < maxWaitingBytes) return undefined;
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  /** Calls back once, when everything has been taken or nobody takes any more. */
  whenDone(callback: () => void): void {
    this.#whenDone.push(callback);
  }

  /** Nothing follows. */
  end(): void {
    this.#ended = true;
    if (this.#waiting.length === 0) this.#finish();
  }

  next(): Promise<IteratorResult<Response>> {
    const value = this.#waiting.shift();
    if (value) {
      this.#took(value);
      return Promise.resolve({ done: false, value });
    }
    if (this.#ended) {
      this.#finish();
      return Promise.resolve({ done: true, value: undefined });
    }
    return new Promise((resolve) => {
      this.#taker = resolve;
    });
  }

  /** The launcher is gone: what was to be said is dropped, and nobody waits for it. */
  async return(): Promise<IteratorResult<Response>> {
    this.#ended = true;
    this.#waiting.length = 0;
    this.#room?.resolve();
    this.#finish();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #took({ output }: Response): void {
    if (output?.case !== "stdout" && output?.case !== "stderr") return;
    this.#waitingBytes -= output.value!.length;
    if (this.#waitingBytes >= maxWaitingBytes / 2) return;
    this.#room?.resolve();
    this.#room = undefined;
  }

  #finish(): void {
    const taker = this.#taker;
    this.#taker = undefined;
    taker?.({ done: true, value: undefined });
    for (const callback of this.#whenDone.splice(0)) setImmediate(callback);
  }
}
