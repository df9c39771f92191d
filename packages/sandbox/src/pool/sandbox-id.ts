import { randomBytes } from "node:crypto";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

/** `sb_` and sixteen letters and digits (Crockford's base 32): eighty random bits. */
export function newSandboxId(): string {
  let id = "sb_";
  for (const byte of randomBytes(16)) id += alphabet[byte & 31];
  return id;
}

/** A host's name may not hold the underscore of a sandbox's id. */
export function hostnameOf(sandboxId: string): string {
  return sandboxId.replaceAll("_", "-");
}
