// Follows the requests in a tunnel without touching them. Node's own parser reads them; what is passed on is only what every reader
// reads alike: heads of the plainest form, whole.
import { ambiguity, namesTarget, pairsOf, valuesOf } from "./headers.ts";
import { Mirror, maxHeadBytes } from "./mirror.ts";

/** A request line and header lines, each with its own end: no folded ones, no control characters, no other line ends. */
const plainest =
  /^[A-Z-]{1,20} [/*][\x21-\x7e\x80-\xff]* HTTP\/1\.[01]\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)+\r\n$/;
const headEnd = "\r\n\r\n";
const lineFeed = 10;
const lastChunk = "0\r\n\r\n";

/** What came of some bytes: those that may go on, and why the rest may not. */
export interface Watched {
  pass: Buffer;
  /** `odd`: it is not the plainest form; otherwise what is wrong. */
  stop?: "odd" | { rule: string; reason: string };
}

export class RequestWatch {
  readonly #name: string;
  readonly #port: number;
  readonly #mirror = new Mirror();
  /** As the requests before wrote it: programs write it the same way each time. */
  #rightHost: string | undefined;
  /** The beginning of a head whose end has not come. */
  #held: Buffer = Buffer.alloc(0);
  /** Bytes of a body that are still to come; infinite in chunks. */
  #body = 0;

  constructor(name: string, port: number) {
    this.#name = name;
    this.#port = port;
  }

  /** What is held back: the part of a request that is not whole yet. */
  get held(): Buffer {
    return this.#held;
  }

  feed(chunk: Buffer): Watched {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = bytes.subarray(0, 0);
    let at = 0;
    while (at < bytes.length) {
      const next = this.#body > 0 ? this.#inBody(bytes, at) : this.#head(bytes, at);
      if (typeof next === "number") {
        at = next;
        continue;
      }
      this.#held = bytes.subarray(at);
      const pass = bytes.subarray(0, at);
      return next === "more" ? { pass } : { pass, stop: next };
    }
    return { pass: bytes };
  }

  /** Nothing more will be fed. */
  close(): void {
    this.#mirror.destroy();
  }

  /** The position after a head, if it is whole and right. */
  #head(bytes: Buffer, at: number): number | "more" | NonNullable<Watched["stop"]> {
    const end = bytes.indexOf(headEnd, at);
    if (end < 0) return bytes.length - at > maxHeadBytes ? "odd" : "more";
    const after = end + headEnd.length;
    if (after - at > maxHeadBytes || !plainest.test(bytes.toString("latin1", at, after))) return "odd";
    const message = this.#mirror.show(bytes.subarray(at, after));
    if (!message) return "odd";
    const pairs = pairsOf(message);
    const why = ambiguity(pairs);
    if (why) return { rule: "ambiguous request", reason: `the request could be read in two ways: ${why}` };
    const [host] = valuesOf(pairs, "host");
    if (host === undefined || message.headers.upgrade !== undefined) return "odd";
    if (host !== this.#rightHost && !namesTarget(host, this.#name, this.#port, 80)) {
      const reason = `a request to ${this.#name}:${this.#port} names another host in its Host header`;
      return { rule: "host header", reason };
    }
    this.#rightHost = host;
    const { "transfer-encoding": coding, "content-length": length = 0 } = message.headers;
    this.#body = coding === undefined ? Number(length) : Number.POSITIVE_INFINITY;
    if (this.#body === 0 && !this.#mirror.finish()) return "odd";
    return after;
  }

  /** The position after what of the bytes is surely body. */
  #inBody(bytes: Buffer, at: number): number | "odd" {
    const isSized = this.#body < Number.POSITIVE_INFINITY;
    const cut = isSized ? Math.min(bytes.length, at + this.#body) : chunksEnd(bytes, at);
    const end = cut ?? bytes.length;
    if (!this.#mirror.showBody(bytes.subarray(at, end))) return "odd";
    this.#body -= end - at;
    if (this.#mirror.isWhole) {
      // Where it ended within them, the bytes hold no other whole head: they end where it does, or not with a line of their own.
      if (cut === undefined && bytes.toString("latin1", end - headEnd.length, end) !== headEnd) return "odd";
      this.#body = 0;
    }
    if (this.#body === 0 && !this.#mirror.finish()) return "odd";
    return end;
  }
}

/** Where a body in chunks could end: after the last chunk, whose first bytes may have come before. */
function chunksEnd(bytes: Buffer, at: number): number | undefined {
  const line = at < lastChunk.length ? bytes.subarray(0, lastChunk.length).indexOf(lineFeed, at) : -1;
  if (line >= 0) return line + 1;
  const last = bytes.indexOf(lastChunk, at);
  return last < 0 ? undefined : last + lastChunk.length;
}
