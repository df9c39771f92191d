import { CaissonError, type Scope } from "@caisson/contract";
import type { Authenticate } from "../../auth/authenticator.ts";
import { type Identity, requireScope } from "../../auth/identity.ts";
import { checkOrigin, type OriginRules } from "../../auth/origin.ts";
import { RateLimit } from "../../auth/rate.ts";
import { one } from "./call.ts";
import type { Request } from "./types.ts";

/** Decides who a request comes from and whether it may pass, before its body is read. */
export interface Gate {
  /** The browser origin that is allowed to read the answer, if the request names one. */
  origin(request: Request): string | undefined;
  admit(request: Request, scope: Scope): Promise<Identity>;
}

/** On the Unix socket: no browser and nobody but the owner can reach it. */
export function ownerGate(owner: Identity): Gate {
  return { origin: () => undefined, admit: async () => owner };
}

export interface NetworkGateOptions extends OriginRules {
  authenticate: Authenticate;
  /** Calls per second and caller. */
  requestsPerSecond: number;
}

/** On a network port: origin, key, rate and scope, in this order. */
export function networkGate(options: NetworkGateOptions): Gate {
  const calls = new RateLimit(options.requestsPerSecond);
  // Guessing is slower than using.
  const failures = new RateLimit(Math.max(1, options.requestsPerSecond / 10));
  return {
    origin: (request) =>
      checkOrigin(
        {
          host: one(request.headers[":authority"] as string | undefined) ?? request.headers.host,
          origin: one(request.headers.origin),
          fetchSite: one(request.headers["sec-fetch-site"]),
        },
        options,
      ),
    async admit(request, scope) {
      const address = request.socket.remoteAddress ?? "";
      let identity: Identity;
      try {
        identity = await options.authenticate(request.headers.authorization);
      } catch (thrown) {
        failures.take(address);
        throw CaissonError.from(thrown);
      }
      calls.take(identity.actor === "" ? address : identity.actor);
      requireScope(identity, scope);
      return identity;
    },
  };
}
