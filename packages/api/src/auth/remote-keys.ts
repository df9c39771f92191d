import { CaissonError } from "@caisson/contract";
import type { JSONWebKeySet, JWTVerifyGetKey } from "jose";

/** A set of keys is small; more is not read. */
const maxBytes = 256 * 1024;
const timeoutMs = 5000;

/** Milliseconds; tests have shorter ones. */
export interface RemoteKeysTimes {
  /** Keys are fetched again after this. Default: 10 minutes. */
  keptFor: number;
  /** An unknown key makes them be fetched again, but not more often than this. Default: 30 s. */
  between: number;
  /** After a failure nothing is fetched for so long. Default: 5 s. */
  afterFailure: number;
}

const defaults: RemoteKeysTimes = { keptFor: 600_000, between: 30_000, afterFailure: 5000 };

/**
 * The issuer's keys by their address. Whoever sends tokens cannot make us ask it more often than the times
 * say, and keys that are too old and cannot be fetched again accept nobody.
 */
export function remoteKeys(address: string, times: Partial<RemoteKeysTimes> = {}): JWTVerifyGetKey {
  const { keptFor, between, afterFailure } = { ...defaults, ...times };
  const url = checkKeysAddress(address);
  let local: JWTVerifyGetKey | undefined;
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let failedAt = Number.NEGATIVE_INFINITY;
  let fetching: Promise<void> | undefined;

  const load = async (): Promise<void> => {
    try {
      const { createLocalJWKSet } = await import("jose");
      local = createLocalJWKSet(await fetchKeys(url));
      fetchedAt = performance.now();
    } catch (cause) {
      failedAt = performance.now();
      throw new CaissonError("UNAVAILABLE", "the issuer's keys cannot be fetched", { cause });
    }
  };
  const refresh = (): Promise<void> => {
    if (performance.now() - failedAt < afterFailure)
      throw new CaissonError("UNAVAILABLE", "the issuer's keys could not be fetched a moment ago");
    fetching ??= load().finally(() => {
      fetching = undefined;
    });
    return fetching;
  };

  return async (header, token) => {
    if (local === undefined || performance.now() - fetchedAt > keptFor) await refresh();
    try {
      return await local!(header, token);
    } catch (thrown) {
      const { errors } = await import("jose");
      if (!(thrown instanceof errors.JWKSNoMatchingKey) || performance.now() - fetchedAt < between)
        throw thrown;
      await refresh();
      return await local!(header, token);
    }
  };
}

/** In the clear only on this machine: whoever sits in between could hand out keys of his own. */
export function checkKeysAddress(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const loopback = ["127.0.0.1", "localhost", "[::1]"].includes(url?.hostname ?? "");
  if (url?.protocol === "https:" || (url?.protocol === "http:" && loopback)) return url;
  throw new CaissonError("CONFIG_INVALID", "auth.jwt.jwks_url must be an https:// address");
}

async function fetchKeys(url: URL): Promise<JSONWebKeySet> {
  const response = await fetch(url, {
    redirect: "error",
    signal: AbortSignal.timeout(timeoutMs),
    headers: { accept: "application/jwk-set+json, application/json" },
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the server answered ${response.status}`);
  }
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > maxBytes) throw new Error(`the answer has more than ${maxBytes} bytes`);
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}
