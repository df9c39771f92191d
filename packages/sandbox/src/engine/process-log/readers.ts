/** A reader that takes nothing for so long no longer holds the process back. */
const stalledMs = 30_000;

/** One reader's place in the output. */
export interface Reader {
  position: number;
  /** Keep what it has not seen, as long as it goes on reading. */
  readonly hold: boolean;
  /** When it last took something. */
  movedAt: number;
}

/** Who reads a process's output, and who waits for something to change. */
export class Readers {
  #readers = new Set<Reader>();
  #waiting: (() => void)[] = [];

  get any(): boolean {
    return this.#readers.size > 0;
  }

  add(position: number, hold: boolean): Reader {
    const reader: Reader = { position, hold, movedAt: performance.now() };
    this.#readers.add(reader);
    return reader;
  }

  remove(reader: Reader): void {
    this.#readers.delete(reader);
    this.wake();
  }

  move(reader: Reader, position: number): void {
    reader.position = position;
    reader.movedAt = performance.now();
    if (reader.hold) this.wake();
  }

  /** Milliseconds until nobody holds what lies before `position`; 0 if nobody does. */
  heldFor(position: number): number {
    let longest = 0;
    for (const reader of this.#readers) {
      if (!reader.hold || reader.position >= position) continue;
      longest = Math.max(longest, reader.movedAt + stalledMs - performance.now());
    }
    return longest;
  }

  /** Something has changed: new output, an exit, a reader that moved or went. */
  wake(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  /** Resolves at the next change, when aborted, or after a time. */
  changed(signal?: AbortSignal, timeoutMs?: number): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      let timer: NodeJS.Timeout | undefined;
      const wake = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      if (timeoutMs !== undefined) timer = setTimeout(wake, timeoutMs).unref();
      signal?.addEventListener("abort", wake, { once: true });
      this.#waiting.push(wake);
    });
  }
}
