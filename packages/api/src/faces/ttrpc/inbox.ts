interface Waiting {
  resolve: (result: IteratorResult<unknown>) => void;
  reject: (error: unknown) => void;
}

/** Messages of a client's stream, in order, between the socket and the handler. */
export class Inbox implements AsyncIterableIterator<unknown> {
  readonly #messages: unknown[] = [];
  readonly #onRoom: () => void;
  readonly #capacity: number;
  #waiting: Waiting | undefined;
  #ended = false;
  #failure: { error: unknown } | undefined;
  #stalled = false;

  /** `onRoom` is called once after every `push` that returned false, when there is room again. */
  constructor(capacity: number, onRoom: () => void) {
    this.#capacity = capacity;
    this.#onRoom = onRoom;
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  /** False, once, when the sender should be held up. */
  push(message: unknown): boolean {
    if (this.#ended) return true;
    const waiting = this.#waiting;
    if (waiting !== undefined) {
      this.#waiting = undefined;
      waiting.resolve({ done: false, value: message });
      return true;
    }
    this.#messages.push(message);
    if (this.#stalled || this.#messages.length < this.#capacity) return true;
    this.#stalled = true;
    return false;
  }

  end(): void {
    this.#ended = true;
    this.#settle();
  }

  /** The reader gets the error at once, whatever lies before it. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#drop();
  }

  async next(): Promise<IteratorResult<unknown>> {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.#messages.length > 0) {
      const value = this.#messages.shift();
      this.#release();
      return { done: false, value };
    }
    if (this.#ended) return { done: true, value: undefined };
    return await new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  async return(): Promise<IteratorResult<unknown>> {
    this.#drop();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #drop(): void {
    this.#messages.length = 0;
    this.#ended = true;
    this.#settle();
    this.#release();
  }

  #release(): void {
    if (!this.#stalled || this.#messages.length >= this.#capacity) return;
    this.#stalled = false;
    this.#onRoom();
  }

  #settle(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (this.#failure !== undefined) waiting?.reject(this.#failure.error);
    else waiting?.resolve({ done: true, value: undefined });
  }
}
