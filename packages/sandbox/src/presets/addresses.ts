import { lookup } from "node:dns/promises";
import { parseAddress } from "../egress/addresses.ts";
import { specialOf } from "../egress/special.ts";
import type { PresetHost } from "./preset.ts";

const lookupWithinMs = 2000;

/** Kinds of addresses that a mirror may well have, and that a rule has to name before anything is dialled there. */
const kinds = new Set(["private", "shared", "reserved"]);

/**
 * A mirror of one's own often has a private address. Where the developer's or the machine's configuration names it,
 * or the tool itself goes there, that address is named too; what only a project's file names stays out, and this machine itself
 * is named only where somebody configured it.
 */
export async function addressRules(hosts: readonly PresetHost[]): Promise<string[]> {
  const trusted = hosts.filter(({ project }) => !project);
  const found = await Promise.all(trusted.map(innerAddresses));
  return found.flat();
}

async function innerAddresses({ rule, byTool }: PresetHost): Promise<string[]> {
  const colon = rule.lastIndexOf(":");
  const [name, port] = [rule.slice(0, colon), rule.slice(colon + 1)];
  if (parseAddress(name) || name.startsWith("[")) return [];
  const late = new Promise<[]>((resolve) => setTimeout(resolve, lookupWithinMs, []).unref());
  const addresses = await Promise.race([lookup(name, { all: true }).catch(() => []), late]);
  return addresses
    .filter(({ address }) => {
      const parsed = parseAddress(address);
      const special = parsed && specialOf(parsed);
      return (
        special && !special.never && (kinds.has(special.kind) || (special.kind === "loopback" && !byTool))
      );
    })
    .map(({ address, family }) => (family === 6 ? `[${address}]:${port}` : `${address}:${port}`));
}
