import type { Reader } from "./reader.ts";

/** Kinds of what is told again and again are few at a time. */
const maxKept = 8;
const maxBytes = 64 * 1024;

/** The last messages of a kind that were read, by their bytes. */
export class RecentMessages {
  readonly #kept: { bytes: Buffer; message: object }[] = [];

  /** The message that the reader has before it, if it was read before; passes over it then. */
  take<T extends object>(reader: Reader): T | undefined {
    const { bytes, at, end } = reader;
    for (const known of this.#kept) {
      if (known.bytes.length !== end - at || known.bytes.compare(bytes, at, end) !== 0) continue;
      reader.at = end;
      return known.message as T;
    }
    return undefined;
  }

  /** From now on it must not change: whoever reads the same gets the same. */
  keep(bytes: Buffer, message: object): void {
    if (bytes.length > maxBytes) return;
    if (this.#kept.length === maxKept) this.#kept.shift();
    this.#kept.push({ bytes: Buffer.from(bytes), message: frozen(message) });
  }
}

function frozen<T extends object>(value: T): T {
  for (const inner of Object.values(value)) {
    // The bytes of a message are views of what was read, and cannot be frozen.
    if (typeof inner === "object" && inner !== null && !ArrayBuffer.isView(inner)) frozen(inner);
  }
  return Object.freeze(value);
}
