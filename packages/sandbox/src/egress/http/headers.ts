// What of a message's headers goes on to the other side, and what makes a request one that could be read in two ways.
import type { IncomingMessage } from "node:http";
import { canonicalHost, splitAuthority } from "../host.ts";

export type Pairs = [name: string, value: string][];

/** About one connection, not about the message. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export function pairsOf(message: IncomingMessage): Pairs {
  const pairs: Pairs = [];
  const { rawHeaders } = message;
  for (let i = 0; i < rawHeaders.length; i += 2) pairs.push([rawHeaders[i]!, rawHeaders[i + 1]!]);
  return pairs;
}

/** Without what concerns one connection alone, and without what the message itself names as such. */
export function passedOn(pairs: Pairs): Pairs {
  const named = new Set(
    valuesOf(pairs, "connection").flatMap((value) =>
      value
        .toLowerCase()
        .split(",")
        .map((word) => word.trim()),
    ),
  );
  return pairs.filter(([name]) => {
    const key = name.toLowerCase();
    return !hopByHop.has(key) && (!named.has(key) || key === "host" || key === "content-length");
  });
}

export function valuesOf(pairs: Pairs, name: string): string[] {
  return pairs.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
}

/** Why a request could mean different things to different readers, if it could. */
export function ambiguity(pairs: Pairs): string | undefined {
  if (valuesOf(pairs, "host").length > 1) return "it names its host twice";
  const lengths = valuesOf(pairs, "content-length");
  const codings = valuesOf(pairs, "transfer-encoding");
  if (lengths.length > 1 || (lengths[0] !== undefined && !/^\d{1,15}$/.test(lengths[0])))
    return "it states its length more than once or not as a number";
  if (codings.length > 1 || (codings[0] !== undefined && codings[0].trim().toLowerCase() !== "chunked"))
    return "its transfer coding is not just `chunked`";
  if (lengths.length > 0 && codings.length > 0) return "it states both a length and a transfer coding";
  return undefined;
}

/** Does a Host header name this target? None does in HTTP/1.0, which needs none. */
export function namesTarget(
  value: string | undefined,
  name: string,
  port: number,
  defaultPort: number,
): boolean {
  if (value === undefined) return true;
  const authority = splitAuthority(value, defaultPort);
  return authority !== undefined && authority.port === port && canonicalHost(authority.host)?.name === name;
}

/** How long a head is, about: its first line with the given text in it, and its other lines. */
export function headBytes(first: string, pairs: Pairs): number {
  return pairs.reduce((sum, [name, value]) => sum + name.length + value.length + 4, first.length + 16);
}
