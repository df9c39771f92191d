import type { Exited } from "@caisson/contract/link";
import type { OutputSink } from "../guest.ts";

/** A sink that keeps everything in memory. */
export class CollectingSink implements OutputSink {
  position = 0;
  readonly exit: Promise<Exited>;
  readonly #parts: { tag: 1 | 2; bytes: Buffer }[] = [];
  #resolve!: (exit: Exited) => void;

  constructor() {
    this.exit = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  async write(tag: 1 | 2, bytes: Uint8Array): Promise<void> {
    this.#parts.push({ tag, bytes: Buffer.from(bytes) });
    this.position += bytes.length;
  }

  exited(exit: Exited): void {
    this.#resolve(exit);
  }

  bytes(tag: 1 | 2): Buffer {
    return Buffer.concat(this.#parts.filter((part) => part.tag === tag).map((part) => part.bytes));
  }
}
