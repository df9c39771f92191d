import { stat } from "node:fs/promises";
import { readHostRoot } from "../bubblewrap/host-root.ts";

/** Looked at again after so long. */
const everyMs = 5000;

/** Notices that the host, or a program that templates are made with, is not what it was. */
export class HostStamp {
  readonly #files: () => readonly string[];
  #known: string | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** @param files programs and kernels that count beside what the image is made from */
  constructor(files: () => readonly string[]) {
    this.#files = files;
  }

  /** Has it changed since this was asked the last time? What was never looked at has not. */
  async changed(now = performance.now()): Promise<boolean> {
    if (now - this.#lookedAt < everyMs) return false;
    this.#lookedAt = now;
    const before = this.#known;
    const { fingerprint } = await import("./host-image.ts");
    this.#known = JSON.stringify([
      await fingerprint(await readHostRoot()),
      ...(await Promise.all(this.#files().map(versionOf))),
    ]);
    return before !== undefined && before !== this.#known;
  }
}

async function versionOf(path: string): Promise<unknown> {
  const found = await stat(path).catch(() => undefined);
  return [path, found?.mtimeMs, found?.size];
}
