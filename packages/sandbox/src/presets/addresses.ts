import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import type { PresetHost } from "./preset.ts";

const lookupWithinMs = 2000;

/** Addresses that a rule has to name before anything is dialled there. */
const inner = new BlockList();
for (const [net, prefix] of [
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
] as const)
  inner.addSubnet(net, prefix, "ipv4");
inner.addSubnet("fc00::", 7, "ipv6");
inner.addAddress("::1", "ipv6");

/**
 * A mirror of one's own often has a private address. Where the developer's or the machine's configuration names it,
 * that address is named too; what only a project's file names stays out.
 */
export async function addressRules(hosts: readonly PresetHost[]): Promise<string[]> {
  const named = hosts.filter(({ from, project }) => !project && from !== "default");
  const found = await Promise.all(named.map(({ rule }) => innerAddresses(rule)));
  return found.flat();
}

async function innerAddresses(rule: string): Promise<string[]> {
  const colon = rule.lastIndexOf(":");
  const [name, port] = [rule.slice(0, colon), rule.slice(colon + 1)];
  if (isIP(name) !== 0 || name.startsWith("[")) return [];
  const late = new Promise<[]>((resolve) => setTimeout(resolve, lookupWithinMs, []).unref());
  const addresses = await Promise.race([lookup(name, { all: true }).catch(() => []), late]);
  return addresses
    .filter(({ address, family }) => inner.check(address, family === 6 ? "ipv6" : "ipv4"))
    .map(({ address, family }) => (family === 6 ? `[${address}]:${port}` : `${address}:${port}`));
}
