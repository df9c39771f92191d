import { CaissonError, Scope } from "@caisson/contract";
import { type Identity, stranger } from "./identity.ts";
import { createJwtVerifier, type JwtOptions } from "./jwt.ts";
import type { Keys } from "./keys.ts";

/** Turns an Authorization header into an identity. */
export type Authenticate = (authorization: string | undefined) => Promise<Identity>;

/** For the network: API keys, and tokens where an issuer is configured. No header: a stranger. */
export function createAuthenticator(keys: Keys, jwt: JwtOptions | undefined): Authenticate {
  const verify = jwt === undefined ? undefined : createJwtVerifier(jwt);
  return async (authorization) => {
    if (authorization === undefined) return stranger;
    const secret = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization)?.[1];
    if (secret === undefined)
      throw new CaissonError("UNAUTHENTICATED", "`Authorization` must be `Bearer KEY`");
    if (secret.startsWith("csn_")) {
      const key = keys.find(secret);
      if (key === undefined)
        throw new CaissonError("UNAUTHENTICATED", "the key is unknown, revoked or expired");
      return { actor: `key:${key.name}`, scopes: new Set([Scope.PUBLIC, ...key.scopes]) };
    }
    if (verify === undefined)
      throw new CaissonError("UNAUTHENTICATED", "the key is unknown, revoked or expired");
    return await verify(secret);
  };
}
