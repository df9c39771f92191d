// Addresses as numbers, so that every way of writing one is judged alike.
import { isIPv4, isIPv6 } from "node:net";

export interface Address {
  family: 4 | 6;
  value: bigint;
  /** As it is dialled and shown. */
  text: string;
}

/** Addresses that share their first `prefix` bits. */
export interface Range {
  family: 4 | 6;
  base: bigint;
  prefix: number;
}

export const bitsOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/** An address in its usual notation; undefined for anything else, zone ids included. A v4-mapped one is its IPv4 address. */
export function parseAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { family: 4, value: v4Value(text), text };
  if (!isIPv6(text) || text.includes("%")) return undefined;
  return fromV6(v6Value(text));
}

export function fromV4(value: bigint): Address {
  const text = [24n, 16n, 8n, 0n].map((shift) => Number((value >> shift) & 0xffn)).join(".");
  return { family: 4, value, text };
}

const mapped: Range = { family: 6, base: 0xffffn << 32n, prefix: 96 };

function fromV6(value: bigint): Address {
  if (inRange({ family: 6, value }, mapped)) return fromV4(value & 0xffffffffn);
  // The URL parser writes addresses as RFC 5952 wants them.
  const groups = Array.from({ length: 8 }, (_, i) =>
    Number((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16),
  );
  const text = new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1);
  return { family: 6, value, text };
}

function v4Value(text: string): bigint {
  return text.split(".").reduce((value, part) => (value << 8n) | BigInt(part), 0n);
}

function v6Value(text: string): bigint {
  const dotted = /(?<=:)\d+\.\d+\.\d+\.\d+$/.exec(text)?.[0];
  const low = dotted === undefined ? 0n : v4Value(dotted);
  const hex =
    dotted === undefined
      ? text
      : `${text.slice(0, -dotted.length)}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  const [head = "", tail] = hex.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const zeros = Array<string>(8 - before.length - after.length).fill("0");
  return [...before, ...zeros, ...after].reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

/** `10.0.0.0/8`, or an address, which is a range of one. Undefined for anything else, also when bits beyond the prefix are set. */
export function parseRange(text: string): Range | undefined {
  const [host = "", length, ...more] = text.split("/");
  const address = parseAddress(host);
  if (!address || more.length > 0) return undefined;
  const bits = bitsOf(address.family);
  if (length === undefined) return { family: address.family, base: address.value, prefix: bits };
  if (!/^\d{1,3}$/.test(length)) return undefined;
  // ::ffff:10.0.0.0/104 is 10.0.0.0/8.
  const prefix = Number(length) - (address.family === 4 && host.includes(":") ? 96 : 0);
  if (prefix < 0 || prefix > bits) return undefined;
  const range = { family: address.family, base: address.value, prefix };
  return (address.value & ((1n << BigInt(bits - prefix)) - 1n)) === 0n ? range : undefined;
}

export function inRange(address: Pick<Address, "family" | "value">, range: Range): boolean {
  if (address.family !== range.family) return false;
  const rest = BigInt(bitsOf(range.family) - range.prefix);
  return address.value >> rest === range.base >> rest;
}
