import { type Address, parseAddress } from "../egress/addresses.ts";
import { specialOf } from "../egress/special.ts";
import type { PresetHost } from "./preset.ts";

/** As connections are looked up later. */
export type LookUp = (name: string) => Promise<readonly Address[]>;

const lookupWithinMs = 2000;

/** Kinds of addresses that a mirror may well have, and that a rule has to name before anything is dialled there. */
const kinds = new Set(["private", "shared", "reserved"]);

/**
 * A mirror of one's own often has a private address. Where the developer's or the machine's configuration names it,
 * or the tool itself goes there, that address is named too; what only a project's file names stays out, and this machine itself
 * is named only where somebody configured it.
 */
export async function addressRules(hosts: readonly PresetHost[], lookUp: LookUp): Promise<string[]> {
  const trusted = hosts.filter(({ project }) => !project);
  const found = await Promise.all(trusted.map((host) => innerAddresses(host, lookUp)));
  return found.flat();
}

async function innerAddresses({ rule, byTool }: PresetHost, lookUp: LookUp): Promise<string[]> {
  const colon = rule.lastIndexOf(":");
  const [name, port] = [rule.slice(0, colon), rule.slice(colon + 1)];
  if (parseAddress(name) || name.startsWith("[")) return [];
  const late = new Promise<[]>((resolve) => setTimeout(resolve, lookupWithinMs, []).unref());
  const addresses = await Promise.race([lookUp(name).catch(() => []), late]);
  return addresses
    .filter((address) => {
      const special = specialOf(address);
      return (
        special && !special.never && (kinds.has(special.kind) || (special.kind === "loopback" && !byTool))
      );
    })
    .map(({ text, family }) => (family === 6 ? `[${text}]:${port}` : `${text}:${port}`));
}
