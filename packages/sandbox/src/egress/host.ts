// What a program asked to reach, in the one form that is judged.
import { type Address, parseAddress } from "./addresses.ts";

/** A name, or an address that was given literally. */
export type Host = { name: string; address?: undefined } | { name: string; address: Address };

/** Everything that could end the host early, or that a later parser could read differently. */
const forbidden = /[\u0000-\u0020\u007f/\\?#@%<>^|`{}"]/;
const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * The canonical form of a host: lower case, punycode, no trailing dot; every notation of an address as that address.
 * Undefined for what is no host: control characters, user information, zone ids, empty labels.
 */
export function canonicalHost(text: string): Host | undefined {
  if (text === "" || text.length > 1024 || forbidden.test(text)) return undefined;
  const bare = parseAddress(text);
  if (bare) return { name: bare.text, address: bare };
  const bracketed = /^\[(.*)\]$/.exec(text);
  if (bracketed) {
    const inner = parseAddress(bracketed[1]!);
    return inner && bracketed[1]!.includes(":") ? { name: inner.text, address: inner } : undefined;
  }
  if (text.includes(":") || text.includes("[") || text.includes("]")) return undefined;
  let hostname: string;
  try {
    hostname = new URL(`http://${text}/`).hostname;
  } catch {
    return undefined;
  }
  const address = parseAddress(hostname);
  if (address) return { name: address.text, address };
  const name = hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  if (name.length > 253 || !name.split(".").every((part) => label.test(part))) return undefined;
  return { name };
}

/** `host:port`, `[v6]:port`; the port may be left out if there is a default. */
export function splitAuthority(
  text: string,
  defaultPort?: number,
): { host: string; port: number } | undefined {
  const match = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text);
  if (!match) return undefined;
  const port = match[2] === undefined ? defaultPort : Number(match[2]);
  if (port === undefined || port < 1 || port > 65_535) return undefined;
  return { host: match[1]!, port };
}
