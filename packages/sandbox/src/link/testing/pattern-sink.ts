import assert from "node:assert/strict";
import type { Exited } from "@caisson/contract/link";
import type { OutputSink } from "../guest.ts";
import { pattern, tagAt } from "./pattern.ts";

/** A sink that checks each byte and tag against the pattern, and tells of the exit. */
export class PatternSink implements OutputSink {
  position = 0;
  exits: Exited[] = [];
  readonly exit: Promise<Exited>;
  writes = 0;
  maxBehind = 0;
  #given = 0;
  readonly #run: number;
  readonly #delay: () => Promise<void> | undefined;
  #resolve!: (exit: Exited) => void;

  /** `delay` says how long a write takes; `from` where an earlier daemon left off. */
  constructor(options: { run: number; delay?: () => Promise<void> | undefined; from?: number }) {
    this.#run = options.run;
    this.#delay = options.delay ?? (() => undefined);
    this.position = options.from ?? 0;
    this.#given = this.position;
    this.exit = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  async write(tag: 1 | 2, bytes: Uint8Array): Promise<void> {
    assert.equal(this.exits.length, 0, "output after the exit");
    this.writes += 1;
    for (let at = 0; at < bytes.length; ) {
      const position = this.#given + at;
      assert.equal(tag, tagAt(position, this.#run), `tag at ${position}`);
      const inRun = this.#run - (position % this.#run);
      const expected = pattern(position, Math.min(inRun, bytes.length - at));
      const piece = bytes.subarray(at, at + expected.length);
      assert.ok(Buffer.compare(piece, expected) === 0, `bytes at ${position}`);
      at += expected.length;
    }
    this.#given += bytes.length;
    this.maxBehind = Math.max(this.maxBehind, this.#given - this.position);
    const delay = this.#delay();
    if (delay) await delay;
    this.position += bytes.length;
  }

  exited(exit: Exited): void {
    assert.equal(BigInt(this.position), exit.position, "the exit comes when everything is stored");
    this.exits.push(exit);
    this.#resolve(exit);
  }
}
