import { METHODS } from "node:http";
import type { Duplex } from "node:stream";
import { type ClientHello, readClientHello } from "./client-hello.ts";
import { FirstLine } from "./first-line.ts";

/** What a program begins with. */
export type Beginning =
  | { protocol: "tls"; hello: ClientHello }
  | { protocol: "http" }
  | { protocol: "other" }
  /** It looked like TLS and is not, or it ended within its first message. */
  | { protocol: "broken" }
  /** Nothing came: the other side has closed. */
  | { protocol: "none" };

const maxBytes = 80 * 1024;
/** How long a few letters that could become a method are waited for: other protocols begin with letters too. */
const patienceMs = 500;

/**
 * Looks at what a stream begins with without taking it away. Rejects when the stream fails.
 * A program that lets the server speak first is waited for as long as it lives.
 */
export function lookAtBeginning(stream: Duplex): Promise<Beginning> {
  const impatient = (bytes: Buffer): Beginning | undefined =>
    bytes[0] !== tlsHandshake && startsLikeHttp(bytes) === undefined ? { protocol: "other" } : undefined;
  return peek(stream, beginningOf, { afterMs: patienceMs, tell: impatient });
}

/**
 * `tell` gets the bytes so far and whether no more will come; undefined: it needs more. Where bytes have come and no more do,
 * `silence` may tell instead.
 */
export function peek<T>(
  stream: Duplex,
  tell: (bytes: Buffer, ended: boolean) => T | undefined,
  silence?: { afterMs: number; tell(bytes: Buffer): T | undefined },
): Promise<T> {
  return new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.alloc(0);
    let ended = stream.readableEnded;
    let timer: NodeJS.Timeout | undefined;
    const leave = () => {
      clearTimeout(timer);
      stream.off("readable", look);
      stream.off("end", end);
      stream.off("close", fail);
      stream.off("error", fail);
    };
    const look = () => {
      for (let chunk = stream.read() as Buffer | null; chunk !== null; chunk = stream.read() as Buffer | null)
        bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      settle(tell(bytes, ended || bytes.length > maxBytes));
    };
    const settle = (told: T | undefined) => {
      if (told !== undefined) {
        leave();
        if (bytes.length > 0 && !ended) stream.unshift(bytes);
        resolve(told);
      } else if (silence && bytes.length > 0) {
        clearTimeout(timer);
        timer = setTimeout(() => settle(silence.tell(bytes)), silence.afterMs).unref();
      }
    };
    const end = () => {
      ended = true;
      look();
    };
    const fail = (error?: Error) => {
      leave();
      reject(error ?? new Error("the connection was closed"));
    };
    if (stream.destroyed) return fail();
    stream.on("readable", look);
    stream.on("end", end);
    stream.on("close", fail);
    stream.on("error", fail);
    if (ended) look();
  });
}

const tlsHandshake = 22;

function beginningOf(bytes: Buffer, ended: boolean): Beginning | undefined {
  if (bytes.length === 0) return ended ? { protocol: "none" } : undefined;
  if (bytes[0] === tlsHandshake) {
    const hello = readClientHello(bytes);
    if (hello === "more") return ended ? { protocol: "broken" } : undefined;
    return hello === "bad" ? { protocol: "broken" } : { protocol: "tls", hello };
  }
  const line = new FirstLine().feed(bytes);
  if (line !== "more") return { protocol: line === "http" ? "http" : "other" };
  const http = startsLikeHttp(bytes);
  if (http !== false && !ended) return undefined;
  return { protocol: http ? "http" : "other" };
}

const methods = METHODS.map((method) => `${method} `);
const longest = Math.max(...methods.map((method) => method.length));

/** Before its first line is whole. Empty lines before it are skipped by servers, and letters may have either case with some. */
function startsLikeHttp(bytes: Buffer): boolean | undefined {
  let at = 0;
  while (at < bytes.length && (bytes[at] === 13 || bytes[at] === 10)) at++;
  const start = bytes.toString("latin1", at, at + longest).toUpperCase();
  if (methods.some((method) => start.startsWith(method))) return true;
  return methods.some((method) => method.startsWith(start)) ? undefined : false;
}
