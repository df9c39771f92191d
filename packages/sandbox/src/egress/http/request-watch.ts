// Follows the requests in a tunnel without touching them: where each begins, and whom it names. It knows the plainest form of
// HTTP/1 only, the one that every reader reads alike; whatever else comes is not passed on.
import { ambiguity, namesTarget, type Pairs, valuesOf } from "./headers.ts";

const maxHeadBytes = 64 * 1024;
const requestLine = /^[A-Z-]{1,20} [/*][\x21-\x7e\x80-\xff]* HTTP\/1\.[01]$/;
const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;

/** What came of some bytes: those that may go on, and why the rest may not. */
export interface Watched {
  pass: Buffer;
  /** `odd`: it is not the plainest form; otherwise what is wrong. */
  stop?: "odd" | { rule: string; reason: string };
}

export class RequestWatch {
  readonly #name: string;
  readonly #port: number;
  /** As the requests before wrote it: programs write it the same way each time. */
  #rightHost: string | undefined;
  /** The beginning of a head, or of a chunk's size, whose end has not come. */
  #held: Buffer = Buffer.alloc(0);
  /** Bytes of a body, or of a chunk, that are still to come. */
  #body = 0;
  #inChunks = false;
  /** A chunk was there: its line end follows. */
  #chunkDone = false;

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
      if (this.#body > 0) {
        const taken = Math.min(this.#body, bytes.length - at);
        this.#body -= taken;
        at += taken;
        continue;
      }
      const next = this.#inChunks ? this.#betweenChunks(bytes, at) : this.#head(bytes, at);
      if (typeof next === "number") at = next;
      else {
        this.#held = bytes.subarray(at);
        return next === "more"
          ? { pass: bytes.subarray(0, at) }
          : { pass: bytes.subarray(0, at), stop: next };
      }
    }
    return { pass: bytes };
  }

  /** The position after a head, if it is whole and right. */
  #head(bytes: Buffer, at: number): number | "more" | NonNullable<Watched["stop"]> {
    const end = bytes.indexOf("\r\n\r\n", at);
    if (end < 0) return bytes.length - at > maxHeadBytes ? "odd" : "more";
    if (end - at > maxHeadBytes) return "odd";
    const [first = "", ...lines] = bytes.toString("latin1", at, end).split("\r\n");
    if (!requestLine.test(first)) return "odd";
    const pairs: Pairs = [];
    for (const line of lines) {
      const match = headerLine.exec(line);
      if (!match) return "odd";
      pairs.push([match[1]!, match[2]!.trimEnd()]);
    }
    const why = ambiguity(pairs);
    if (why) return { rule: "ambiguous request", reason: `the request could be read in two ways: ${why}` };
    const [host] = valuesOf(pairs, "host");
    if (host === undefined || valuesOf(pairs, "upgrade").length > 0) return "odd";
    if (host !== this.#rightHost && !namesTarget(host, this.#name, this.#port, 80)) {
      const reason = `a request to ${this.#name}:${this.#port} names another host in its Host header`;
      return { rule: "host header", reason };
    }
    this.#rightHost = host;
    this.#inChunks = valuesOf(pairs, "transfer-encoding").length > 0;
    this.#body = this.#inChunks ? 0 : Number(valuesOf(pairs, "content-length")[0] ?? 0);
    return end + 4;
  }

  /** The position after a chunk's line end or size; extensions and trailers are not of the plainest form. */
  #betweenChunks(bytes: Buffer, at: number): number | "more" | "odd" {
    const end = bytes.indexOf("\r\n", at);
    if (end < 0) return bytes.length - at > 10 ? "odd" : "more";
    if (this.#chunkDone) {
      this.#chunkDone = false;
      return end === at ? at + 2 : "odd";
    }
    const text = bytes.toString("latin1", at, Math.min(end, at + 20));
    if (!/^[0-9A-Fa-f]{1,8}$/.test(text)) return "odd";
    this.#body = Number.parseInt(text, 16);
    this.#chunkDone = this.#body > 0;
    if (this.#chunkDone) return end + 2;
    if (bytes.length < end + 4) return "more";
    if (bytes.toString("latin1", end + 2, end + 4) !== "\r\n") return "odd";
    this.#inChunks = false;
    return end + 4;
  }
}
