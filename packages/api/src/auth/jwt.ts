import { readFile, stat } from "node:fs/promises";
import { CaissonError, Scope } from "@caisson/contract";
import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey } from "jose";
import type { Identity } from "./identity.ts";
import { type RemoteKeysTimes, remoteKeys } from "./remote-keys.ts";

/** Whose tokens are accepted. */
export interface JwtOptions {
  issuer: string;
  audience: string;
  /** The issuer's public keys, as a JWKS document. */
  jwks?: object;
  /** A file with them; read again when it changes. */
  jwksFile?: string;
  /** Where the issuer publishes its JWKS document. The only address that is ever fetched. */
  jwksUrl?: string;
  /** How often. */
  times?: Partial<RemoteKeysTimes>;
}

/** Public-key signatures only: with HMAC, whoever can check a token can make one. */
const algorithms = ["EdDSA", "RS256", "ES256"];
const clockToleranceS = 5;
/** Longer ones are refused unread. */
const maxTokenBytes = 8192;

const scopes: Readonly<Record<string, Scope>> = {
  "caisson:read": Scope.READ,
  "caisson:write": Scope.WRITE,
  "caisson:approve": Scope.APPROVE,
  "caisson:admin": Scope.ADMIN,
  "caisson:all": Scope.ALL,
};

/** Checks tokens; returns who they speak for. */
export function createJwtVerifier(options: JwtOptions): (token: string) => Promise<Identity> {
  const { jwksUrl, times, jwks } = options;
  let keys: Promise<JWTVerifyGetKey> | undefined;
  if (jwksUrl !== undefined) keys = Promise.resolve(remoteKeys(jwksUrl, times));
  else if (jwks !== undefined)
    keys = import("jose").then((jose) => jose.createLocalJWKSet(jwks as JSONWebKeySet));
  keys?.catch(() => {});
  let readAt = Number.NaN;
  return async (token) => {
    if (token.length > maxTokenBytes) throw refused();
    const jose = await import("jose");
    if (options.jwksFile !== undefined) {
      const { mtimeMs } = await stat(options.jwksFile).catch(unreadable);
      if (mtimeMs !== readAt) {
        readAt = mtimeMs;
        keys = readFile(options.jwksFile, "utf8").then((text) => jose.createLocalJWKSet(JSON.parse(text)));
      }
    }
    if (keys === undefined) throw refused();
    const found = await keys.catch(unreadable);
    try {
      const { payload } = await jose.jwtVerify(token, found, {
        algorithms,
        issuer: options.issuer,
        audience: options.audience,
        clockTolerance: clockToleranceS,
        requiredClaims: ["exp", "sub"],
      });
      return identityOf(payload);
    } catch (thrown) {
      // What exactly is wrong with it helps those who forge tokens more than those who have one.
      if (thrown instanceof CaissonError) throw thrown;
      throw thrown instanceof jose.errors.JWTExpired ? expired() : refused(thrown);
    }
  };
}

function identityOf(payload: JWTPayload): Identity {
  const subject = String(payload.sub);
  if (!/^[\x21-\x7e]{1,128}$/.test(subject)) throw refused();
  const named = typeof payload.scope === "string" ? payload.scope.split(" ") : [];
  const granted = named.map((name) => (Object.hasOwn(scopes, name) ? scopes[name] : undefined));
  return {
    actor: `jwt:${subject}`,
    scopes: new Set([Scope.PUBLIC, ...granted.filter((scope) => scope !== undefined)]),
  };
}

function expired(): CaissonError {
  return new CaissonError("UNAUTHENTICATED", "the token has expired");
}

function refused(cause?: unknown): CaissonError {
  return new CaissonError("UNAUTHENTICATED", "the token is not accepted", { cause });
}

function unreadable(cause: unknown): never {
  throw new CaissonError("UNAVAILABLE", "the issuer's keys cannot be read", { cause });
}
