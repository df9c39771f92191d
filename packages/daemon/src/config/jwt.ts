import { checkKeysAddress, type JwtOptions } from "@caisson/api";
import { CaissonError } from "@caisson/contract";
import type { Config } from "./config.ts";

/** Whose tokens are accepted; undefined for nobody's. A half of it is a mistake that shows at start. */
export function jwtOptions(config: Pick<Config, "text" | "table">): JwtOptions | undefined {
  const issuer = config.text("auth.jwt.issuer");
  const jwks = config.table("auth.jwt.jwks");
  const sources = {
    ...(Object.keys(jwks).length > 0 && { jwks }),
    ...(config.text("auth.jwt.jwks_file") && { jwksFile: config.text("auth.jwt.jwks_file") }),
    ...(config.text("auth.jwt.jwks_url") && { jwksUrl: config.text("auth.jwt.jwks_url") }),
  };
  const named = Object.keys(sources).length;
  if (issuer === "" && named === 0) return undefined;
  if (issuer === "") throw invalid("keys are given without auth.jwt.issuer, whose they are");
  if (named !== 1) throw invalid("auth.jwt.issuer needs one of auth.jwt.jwks, jwks_file and jwks_url");
  if (sources.jwks && !Array.isArray(sources.jwks.keys))
    throw invalid("auth.jwt.jwks must have a list `keys`");
  if (sources.jwksUrl) checkKeysAddress(sources.jwksUrl);
  return { issuer, audience: config.text("auth.jwt.audience"), ...sources };
}

function invalid(message: string): CaissonError {
  return new CaissonError("CONFIG_INVALID", message);
}
