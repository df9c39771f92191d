import type { Beside } from "./beside.ts";

/** Looked at again after so long: a toolchain may have a hundred thousand files. */
const everyMs = 5000;
/** Callers with other toolchains are few. */
const remembered = 8;

/** What is shown of the host beside an image, looked at once in a while. */
export class BesideStamp {
  readonly #looks = new Map<string, { at: number; found: Promise<Beside> }>();

  look(paths: readonly string[], now = performance.now()): Promise<Beside> {
    const key = paths.join("\0");
    const last = this.#looks.get(key);
    if (last && now - last.at < everyMs) return last.found;
    const found = import("./beside.ts").then(({ lookBeside }) => lookBeside(paths));
    // What failed is looked at again for the next who asks.
    found.catch(() => this.#looks.get(key)?.found === found && this.#looks.delete(key));
    this.#looks.delete(key);
    this.#looks.set(key, { at: now, found });
    for (const old of [...this.#looks.keys()].slice(0, -remembered)) this.#looks.delete(old);
    return found;
  }
}
