import { CaissonError } from "@caisson/contract";
import { type Address, inRange, parseRange, type Range } from "./addresses.ts";
import { canonicalHost, type Host } from "./host.ts";

/** One rule of a policy. */
export interface Rule {
  /** As it was given. */
  text: string;
  /** Exactly this name; or every name that ends so, with its leading dot. */
  name?: string;
  below?: string;
  range?: Range;
  /** Only this port; any if undefined. */
  port?: number;
}

/** Reads a rule; throws INVALID_INPUT with what is wrong. */
export function parseRule(text: string): Rule {
  const wrong = (why: string): CaissonError =>
    new CaissonError("INVALID_INPUT", `the rule ${JSON.stringify(text.slice(0, 300))} ${why}`);
  const { rest, port } = splitPort(text);
  if (port !== undefined && (port < 1 || port > 65_535)) throw wrong("has a port beyond 1 to 65535");
  const base = { text, ...(port === undefined ? {} : { port }) };
  const inner = /^\[(.*)\]$/.exec(rest)?.[1] ?? rest;
  const range = parseRange(inner);
  if (range) return { ...base, range };
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text))
    throw wrong("is an address of a page: name the host alone, such as example.com or example.com:443");
  if (inner.includes("/"))
    throw wrong("is neither a name nor a range whose address has no bits beyond its prefix");
  const below = rest.startsWith("*.");
  const host = canonicalHost(below ? rest.slice(2) : rest);
  if (!host) throw wrong("is not a name, `*.` and a name, an address or a range, with a port if wanted");
  if (host.address) {
    if (below) throw wrong("puts `*.` before an address");
    return { ...base, range: parseRange(host.address.text)! };
  }
  return below ? { ...base, below: `.${host.name}` } : { ...base, name: host.name };
}

/** A bare IPv6 address or range has no port: its colons are its own. */
function splitPort(text: string): { rest: string; port?: number } {
  const match = /^(\[[^\]]*\]|[^:]*):(\d{1,5})$/.exec(text);
  return match ? { rest: match[1]!, port: Number(match[2]) } : { rest: text };
}

export function matchesPort(rule: Rule, port: number): boolean {
  return rule.port === undefined || rule.port === port;
}

/** Is this rule about the name, or about the literal address, that was asked for? */
export function matchesHost(rule: Rule, host: Host, port: number): boolean {
  if (!matchesPort(rule, port)) return false;
  if (host.address) return matchesAddress(rule, host.address, port);
  return rule.name === host.name || (rule.below !== undefined && host.name.endsWith(rule.below));
}

export function matchesAddress(rule: Rule, address: Address, port: number): boolean {
  return matchesPort(rule, port) && rule.range !== undefined && inRange(address, rule.range);
}

/** Does `outer` allow everything that `inner` allows? */
export function covers(outer: Rule, inner: Rule): boolean {
  if (outer.port !== undefined && outer.port !== inner.port) return false;
  if (inner.range)
    return (
      outer.range !== undefined &&
      outer.range.prefix <= inner.range.prefix &&
      inRange({ family: inner.range.family, value: inner.range.base }, outer.range)
    );
  if (inner.below) return outer.below !== undefined && inner.below.endsWith(outer.below);
  return outer.name === inner.name || (outer.below !== undefined && inner.name!.endsWith(outer.below));
}

/** How a target is written in a rule that allows exactly it. */
export function ruleFor(name: string, port: number): string {
  return name.includes(":") ? `[${name}]:${port}` : `${name}:${port}`;
}
