// The judgement: what may be reached, by name and by address. Pure; nothing here looks anything up.
import type { Address } from "./addresses.ts";
import type { Host } from "./host.ts";
import { matchesAddress, matchesHost, parseRule, type Rule, ruleFor } from "./rules.ts";
import { names, specialOf } from "./special.ts";

export const networkModes = ["off", "allow", "ask", "on"] as const;
export type NetworkMode = (typeof networkModes)[number];

export function isNetworkMode(word: unknown): word is NetworkMode {
  return (networkModes as readonly unknown[]).includes(word);
}

/** What the machine's policy allows at most; nothing of a sandbox's own rules goes beyond it. */
export interface NetworkBounds {
  modes?: readonly NetworkMode[];
  /** Only these, if given. */
  only?: readonly string[];
  deny?: readonly string[];
}

export interface PolicyInit {
  mode: NetworkMode;
  allow: readonly string[];
  deny: readonly string[];
  bounds?: NetworkBounds;
  /** Ports of the daemon itself on this host's addresses. */
  ownPorts?: () => readonly number[];
}

export interface Verdict {
  verdict: "allowed" | "refused" | "ask";
  /** What decided: a rule as it was given, or a fixed phrase. */
  rule: string;
  /** A sentence. */
  reason: string;
  /** The rule that would allow it, if one could. */
  add?: string;
}

const refused = (rule: string, reason: string, add?: string): Verdict => ({
  verdict: "refused",
  rule,
  reason,
  ...(add === undefined ? {} : { add }),
});

export class Policy {
  readonly mode: NetworkMode;
  readonly #allow: Rule[];
  readonly #deny: Rule[];
  readonly #only: Rule[] | undefined;
  readonly #machineDeny: Rule[];
  readonly #ownPorts: () => readonly number[];

  constructor({ mode, allow, deny, bounds, ownPorts = () => [] }: PolicyInit) {
    this.mode = mode;
    this.#allow = allow.map(parseRule);
    this.#deny = deny.map(parseRule);
    this.#only = bounds?.only?.map(parseRule);
    this.#machineDeny = (bounds?.deny ?? []).map(parseRule);
    this.#ownPorts = ownPorts;
  }

  /** Judges what was asked for, before anything is looked up. */
  judge(host: Host, port: number): Verdict {
    const target = ruleFor(host.name, port);
    if (this.mode === "off") return refused("mode off", "the network of this sandbox is off", target);
    const forbidden = this.#machineDeny.find((rule) => matchesHost(rule, host, port));
    if (forbidden) return refused(forbidden.text, `the machine's policy denies ${forbidden.text}`);
    if (this.#only && !this.#only.some((rule) => matchesHost(rule, host, port)))
      return refused("machine policy", `the machine's policy does not name ${target}`);
    const denied = this.#deny.find((rule) => matchesHost(rule, host, port));
    if (denied) return refused(denied.text, `the rule ${denied.text} denies it`);
    const allowing = this.#allow.find((rule) => matchesHost(rule, host, port));
    if (allowing)
      return { verdict: "allowed", rule: allowing.text, reason: `the rule ${allowing.text} allows it` };
    const reason = `no rule allows ${target}`;
    if (this.mode === "on")
      return { verdict: "allowed", rule: "mode on", reason: "everything public is allowed" };
    if (host.address && specialOf(host.address)) return this.judgeAddress(host.address, host, port)!;
    return this.mode === "ask"
      ? { verdict: "ask", rule: "mode ask", reason, add: target }
      : refused("no rule", reason, target);
  }

  /** Judges an address to which an allowed name leads: a refusal, or nothing to say against it. */
  judgeAddress(address: Address, host: Host, port: number): Verdict | undefined {
    const leads = host.address ? address.text : `${host.name} leads to ${address.text}, which`;
    for (const rule of [...this.#machineDeny, ...this.#deny]) {
      if (matchesAddress(rule, address, port))
        return refused(rule.text, `the rule ${rule.text} denies ${address.text}`);
    }
    const special = specialOf(address);
    if (!special) return undefined;
    const local = special.kind === "loopback" || special.kind === "host";
    if (local && this.#ownPorts().includes(port))
      return refused(
        "daemon's own port",
        `${leads} is this daemon itself, which no sandbox may reach by network`,
      );
    const named = this.#allow.some(
      (rule) => rule.range && matchesAddress(rule, address, port) && names(rule.range, address, special),
    );
    if (named) return undefined;
    const rule = `${special.kind} address`;
    if (special.never)
      return refused(rule, `${leads} is ${article(special.kind)} address, which is never dialled`);
    return refused(
      rule,
      `${leads} is ${article(special.kind)} address that no rule names`,
      ruleFor(address.text, port),
    );
  }
}

function article(kind: string): string {
  if (kind === "host") return "this host's own";
  return /^[aeiou]/.test(kind) ? `an ${kind}` : `a ${kind}`;
}
