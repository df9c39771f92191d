// Puts secrets in where their placeholders stand, for their own hosts; takes placeholders out everywhere else; and takes
// values out of what comes back. Pure: no connection is touched here.
import type { Injection } from "./definition.ts";
import type { Replacement } from "./replacing.ts";

/** A secret as a sandbox has it. */
export interface GrantedSecret {
  name: string;
  placeholder: string;
  inject: readonly Injection[];
  /** Undefined while it is not to be had: then nothing is put in. */
  value(): string | undefined;
  /** Does a connection to this host get it? */
  covers(name: string, port: number, tls: boolean): boolean;
}

export interface Destination {
  name: string;
  port: number;
  tls: boolean;
}

export type Pairs = [name: string, value: string][];

export interface BodyReplacement {
  secret: string;
  replacement: Replacement;
  /** The value is put in; otherwise the placeholder is made worthless. */
  puts: boolean;
}

/** What was done to a request. */
export interface Tally {
  used: Set<string>;
  stripped: Set<string>;
  /** What was put in and could come back: texts, with what stands for them. */
  masks: Map<string, string>;
}

export function newTally(): Tally {
  return { used: new Set(), stripped: new Set(), masks: new Map() };
}

/** Values shorter than this are not looked for in answers: they would be found in anything. */
const shortestMasked = 8;

export class Injector {
  readonly #secrets: readonly GrantedSecret[];

  constructor(secrets: readonly GrantedSecret[]) {
    this.#secrets = secrets;
  }

  wants(name: string, port: number): boolean {
    return this.#secrets.some((secret) => secret.covers(name, port, true));
  }

  headers(pairs: readonly (readonly [string, string])[], to: Destination, tally: Tally): Pairs {
    return pairs.map(([name, value]) => {
      const basic = /^authorization$|^proxy-authorization$/i.test(name) && /^(basic) +(\S+)$/i.exec(value);
      if (basic) return [name, this.#basic(basic[2]!, value, to, tally)];
      return [name, this.#text(value, "header", to, tally)];
    });
  }

  /** The path of a request: nothing is put in, and placeholders for others are made worthless in place. */
  path(path: string, to: Destination, tally: Tally): string {
    let result = path;
    for (const secret of this.#secrets) {
      const { name, placeholder } = secret;
      if (!result.includes(placeholder) || secret.covers(to.name, to.port, to.tls)) continue;
      tally.stripped.add(name);
      result = result.replaceAll(placeholder, "x".repeat(placeholder.length));
    }
    return result;
  }

  /** For a request's body: what is put in, written as its type needs it, and what is made worthless in place. */
  body(contentType: string, to: Destination): BodyReplacement[] {
    return this.#secrets.flatMap((secret): BodyReplacement[] => {
      const from = Buffer.from(secret.placeholder);
      if (!secret.covers(to.name, to.port, to.tls))
        return [
          { secret: secret.name, replacement: { from, to: Buffer.alloc(from.length, "x") }, puts: false },
        ];
      const value = secret.inject.includes("body") ? secret.value() : undefined;
      if (value === undefined) return [];
      return [
        {
          secret: secret.name,
          replacement: { from, to: Buffer.from(encoded(value, contentType)) },
          puts: true,
        },
      ];
    });
  }

  /** What is looked for in an answer: the values of this host's secrets and what was made of them, each by as many bytes. */
  masks(to: Destination, tally: Tally): Replacement[] {
    const texts = new Map(tally.masks);
    for (const secret of this.#secrets) {
      const { placeholder } = secret;
      const known = secret.covers(to.name, to.port, to.tls) ? secret.value() : undefined;
      if (known === undefined || known.length < shortestMasked) continue;
      for (const text of [known, encodeURIComponent(known), JSON.stringify(known).slice(1, -1)])
        texts.set(text, placeholder);
      texts.set(Buffer.from(known).toString("base64"), placeholder);
    }
    return [...texts].map(([text, placeholder]) => {
      const from = Buffer.from(text);
      return { from, to: Buffer.alloc(from.length, placeholder) };
    });
  }

  #text(text: string, kind: Injection, to: Destination, tally: Tally): string {
    let result = text;
    for (const secret of this.#secrets) {
      if (!result.includes(secret.placeholder)) continue;
      const value = this.#valueFor(secret, kind, to);
      if (value === undefined) tally.stripped.add(secret.name);
      else tally.used.add(secret.name);
      result = result.replaceAll(secret.placeholder, value ?? "");
    }
    return result;
  }

  #basic(credentials: string, whole: string, to: Destination, tally: Tally): string {
    const decoded = Buffer.from(credentials, "base64").toString("utf8");
    const held = this.#secrets.filter(({ placeholder }) => decoded.includes(placeholder));
    if (held.length === 0) return this.#text(whole, "header", to, tally);
    const filled = Buffer.from(this.#text(decoded, "basic", to, tally)).toString("base64");
    for (const { name, placeholder } of held)
      if (tally.used.has(name)) tally.masks.set(filled, Buffer.from(`:${placeholder}`).toString("base64url"));
    return `Basic ${filled}`;
  }

  #valueFor(secret: GrantedSecret, kind: Injection, to: Destination): string | undefined {
    if (!secret.covers(to.name, to.port, to.tls) || !secret.inject.includes(kind)) return undefined;
    return secret.value();
  }
}

/** A value as it stands in a body of this type. */
function encoded(value: string, contentType: string): string {
  if (/^application\/x-www-form-urlencoded/i.test(contentType)) return encodeURIComponent(value);
  return /^application\/([\w.+-]+\+)?json/i.test(contentType) ? JSON.stringify(value).slice(1, -1) : value;
}
