/** Bytes from the launcher on their way to whoever reads them. */
export class Inlet implements AsyncIterable<Uint8Array> {
  readonly #waiting: Uint8Array[] = [];
  readonly #bounds: { high: number; low: number; full: () => void; room: () => void };
  #bytes = 0;
  #isFull = false;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  /** `full` and `room` are called when the waiting bytes reach `high` and fall to `low` again. */
  constructor(bounds: { high: number; low: number; full: () => void; room: () => void }) {
    this.#bounds = bounds;
  }

  push(bytes: Uint8Array): void {
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    if (!this.#isFull && this.#bytes >= this.#bounds.high) {
      this.#isFull = true;
      this.#bounds.full();
    }
    this.#nudge();
  }

  end(error?: Error): void {
    this.#ended = true;
    this.#error = error;
    this.#nudge();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const bytes = this.#waiting.shift();
      if (bytes) {
        this.#bytes -= bytes.length;
        if (this.#isFull && this.#bytes <= this.#bounds.low) {
          this.#isFull = false;
          this.#bounds.room();
        }
        yield bytes;
      } else if (this.#ended) {
        if (this.#error) throw this.#error;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  #nudge(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
