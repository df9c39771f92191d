// Addresses that are not the public internet: nobody gets there by a name's saying so.
import { networkInterfaces } from "node:os";
import { type Address, bitsOf, fromV4, inRange, parseAddress, parseRange, type Range } from "./addresses.ts";

/** A kind of address that rules must name before it is dialled. */
export interface Special {
  /** As it is shown: `private`, `loopback`, … */
  kind: string;
  /** A rule names it if it reaches no further than this. */
  range: Range;
  /** Not dialled at all, whatever rules name. */
  never?: boolean;
}

const list = (kind: string, texts: string, never = false): Special[] =>
  texts.split(" ").map((text) => ({ kind, range: parseRange(text)!, never }));

/** More specific ones first. */
const specials: readonly Special[] = [
  ...list(
    "metadata",
    "169.254.169.254 169.254.170.2 169.254.169.123 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd00:ec2::23 fd20:ce::254",
  ),
  ...list("unspecified", "0.0.0.0/8 ::", true),
  ...list("multicast", "224.0.0.0/4 ff00::/8", true),
  ...list("reserved", "240.0.0.0/4", true),
  ...list("loopback", "127.0.0.0/8 ::1"),
  ...list("link-local", "169.254.0.0/16 fe80::/10"),
  ...list("private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10"),
  ...list("shared", "100.64.0.0/10"),
  ...list(
    "reserved",
    "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24",
  ),
  ...list("translated", "64:ff9b:1::/48 2002::/16 2001::/32"),
  ...list("reserved", "2001::/23 2001:db8::/32 3fff::/20"),
];

const globalUnicast = parseRange("2000::/3")!;
const nat64 = parseRange("64:ff9b::/96")!;
const everythingV6: Special = { kind: "reserved", range: { family: 6, base: 0n, prefix: 0 }, never: true };

/** Why an address is not simply the internet, or undefined if it is. `own` are the host's addresses. */
export function specialOf(address: Address, own: ReadonlySet<string> = hostAddresses()): Special | undefined {
  const found = specials.find(({ range }) => inRange(address, range));
  if (own.has(address.text) && found?.kind !== "loopback") return { kind: "host", range: exactly(address) };
  if (found) return found;
  if (inRange(address, nat64)) {
    // Behind a translator it is the IPv4 address that is reached.
    const behind = specialOf(fromV4(address.value & 0xffffffffn), own);
    return behind && { kind: behind.kind, range: exactly(address), never: behind.never ?? false };
  }
  return address.family === 6 && !inRange(address, globalUnicast) ? everythingV6 : undefined;
}

/** Does a rule about `range` name this special address, instead of merely containing it? */
export function names(range: Range, address: Address, special: Special): boolean {
  return !special.never && inRange(address, range) && range.prefix >= special.range.prefix;
}

function exactly({ family, value }: Address): Range {
  return { family, base: value, prefix: bitsOf(family) };
}

let known: { addresses: ReadonlySet<string>; until: number } | undefined;
const knownMs = 2000;

/** The addresses of this machine. They change with its networks, so they are read again and again. */
export function hostAddresses(): ReadonlySet<string> {
  if (known && performance.now() < known.until) return known.addresses;
  const addresses = new Set<string>();
  for (const list of Object.values(networkInterfaces())) {
    for (const { address } of list ?? []) {
      const parsed = parseAddress(address.split("%")[0]!);
      if (parsed) addresses.add(parsed.text);
    }
  }
  known = { addresses, until: performance.now() + knownMs };
  return addresses;
}
