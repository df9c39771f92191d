import { isIP } from "node:net";
import { CaissonError } from "@caisson/contract";

export interface OriginRules {
  /** Names, beside loopback ones, that requests may be addressed to. */
  allowedHosts: readonly string[];
  /** Web origins, such as `https://example.org`, that may call from a browser. */
  allowedOrigins: readonly string[];
}

/** What of a request decides whether a browser was tricked into making it. */
export interface OriginHeaders {
  host: string | undefined;
  origin: string | undefined;
  fetchSite: string | undefined;
}

const loopback: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Refuses requests that a foreign web page can cause: under a name that is not ours (DNS rebinding)
 * or from an origin that is not ours. Returns the origin when it is one of the allowed ones.
 */
export function checkOrigin(headers: OriginHeaders, rules: OriginRules): string | undefined {
  const host = hostName(headers.host);
  if (
    host === undefined ||
    !(loopback.includes(host) || rules.allowedHosts.some((name) => sameHost(name, host)))
  ) {
    throw foreign("the request is addressed to a host that is not allowed");
  }
  const { origin } = headers;
  if (origin === undefined) {
    if (headers.fetchSite === "cross-site") throw foreign("the request comes from another site");
    return undefined;
  }
  if (rules.allowedOrigins.includes(origin)) return origin;
  if (origin === `http://${headers.host}` || origin === `https://${headers.host}`) return undefined;
  throw foreign("the request comes from an origin that is not allowed");
}

/** The name in a Host header, without its port; undefined for what is not one. */
function hostName(host: string | undefined): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(:[0-9]{1,5})?$/i.exec(host ?? "");
  const name = match?.[1]?.toLowerCase();
  if (name?.startsWith("[") && isIP(name.slice(1, -1)) !== 6) return undefined;
  return name;
}

function sameHost(allowed: string, host: string): boolean {
  const name = allowed.toLowerCase();
  return name === host || `[${name}]` === host;
}

function foreign(message: string): CaissonError {
  return new CaissonError("FOREIGN_ORIGIN", message);
}
