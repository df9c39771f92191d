// What a secret is: where its value comes from, which hosts get it, and where in a request it may stand.
import { CaissonError } from "@caisson/contract";
import { canonicalHost } from "../egress/host.ts";
import { matchesHost, parseRule, type Rule } from "../egress/rules.ts";

export const injections = ["header", "basic", "body"] as const;
export type Injection = (typeof injections)[number];

export type SecretSource = { env: string } | { file: string } | { command: string[] } | { stored: true };

export interface SecretDefinition {
  /** Also the variable that holds its placeholder inside. */
  name: string;
  source: SecretSource;
  /** As rules name them: `api.example.com`, `*.example.com:8443`. */
  hosts: string[];
  inject: Injection[];
}

const mostHosts = 64;

export function isSecretName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name);
}

/** Reads `secrets` of the configuration: `{ API_TOKEN: { env: API_TOKEN, hosts: [api.example.com] } }`. */
export function parseDefinitions(table: Record<string, unknown>): SecretDefinition[] {
  return Object.entries(table).map(([name, value]) => parseDefinition(name, value));
}

export function parseDefinition(name: string, value: unknown): SecretDefinition {
  const wrong = (why: string) => new CaissonError("CONFIG_INVALID", `secrets.${name} ${why}`);
  if (!isSecretName(name)) throw wrong("is not a variable's name");
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong("must be a table");
  const {
    env,
    file,
    command,
    stored,
    hosts,
    inject = ["header", "basic"],
    ...others
  } = value as Record<string, unknown>;
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined)
    throw wrong(`has an unknown key ${unknown}; there are env, file, command, hosts, inject`);
  const sources = Object.entries({ env, file, command, stored }).filter(([, given]) => given !== undefined);
  if (sources.length !== 1) throw wrong("must have exactly one of env, file and command");
  return {
    name,
    source: parseSource(sources[0]!, wrong),
    hosts: parseHosts(hosts, wrong),
    inject: parseInjections(inject, wrong),
  };
}

function parseSource([kind, given]: [string, unknown], wrong: (why: string) => CaissonError): SecretSource {
  if (kind === "stored") return { stored: true };
  if (kind === "command") {
    if (isTexts(given) && given.length > 0) return { command: given };
    throw wrong("must have a command as a list of words");
  }
  if (typeof given !== "string" || given === "") throw wrong(`must have a text as ${kind}`);
  return kind === "env" ? { env: given } : { file: given };
}

function parseHosts(hosts: unknown, wrong: (why: string) => CaissonError): string[] {
  if (!isTexts(hosts) || hosts.length === 0 || hosts.length > mostHosts)
    throw wrong(`must name 1 to ${mostHosts} hosts`);
  for (const host of hosts) {
    try {
      parseRule(host);
    } catch {
      throw wrong(`names ${JSON.stringify(host)}, which is no host`);
    }
  }
  return hosts;
}

function parseInjections(inject: unknown, wrong: (why: string) => CaissonError): Injection[] {
  const words = typeof inject === "string" ? [inject] : inject;
  if (
    isTexts(words) &&
    words.length > 0 &&
    words.every((word) => (injections as readonly string[]).includes(word))
  )
    return [...new Set(words)] as Injection[];
  throw wrong(`must inject into ${injections.join(", ")}`);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Which connections get a secret. */
export class Binding {
  readonly #rules: Rule[];

  constructor({ hosts }: Pick<SecretDefinition, "hosts">) {
    this.#rules = hosts.map(parseRule);
  }

  /** Without TLS everybody on the way could read it: then only where the port was named. */
  covers(name: string, port: number, tls: boolean): boolean {
    const host = canonicalHost(name);
    if (!host) return false;
    return this.#rules.some((rule) => matchesHost(rule, host, port) && (tls || rule.port !== undefined));
  }
}
