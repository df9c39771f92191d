import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { CaissonError, Scope, scope as scopeOption } from "@caisson/contract";

/** Who is calling, as far as the daemon knows. */
export interface Identity {
  /** `uid:1000`, `key:NAME`, `jwt:SUBJECT`; empty for somebody unknown. */
  actor: string;
  scopes: ReadonlySet<Scope>;
}

/** The owner of the Unix socket holds every scope. */
export function ownerIdentity(uid: number): Identity {
  return {
    actor: `uid:${uid}`,
    scopes: new Set([Scope.PUBLIC, Scope.READ, Scope.WRITE, Scope.APPROVE, Scope.ADMIN, Scope.ALL]),
  };
}

/** Somebody without a key. */
export const stranger: Identity = { actor: "", scopes: new Set([Scope.PUBLIC]) };

/** What a caller needs for a method. A method that does not say needs the most. */
export function scopeOf(method: DescMethod): Scope {
  const scope = getOption(method, scopeOption);
  return scope === Scope.UNSPECIFIED ? Scope.ADMIN : scope;
}

/** Throws unless the caller holds the scope. */
export function requireScope(identity: Identity, scope: Scope): void {
  if (identity.scopes.has(scope)) return;
  if (identity.actor === "") throw new CaissonError("UNAUTHENTICATED", "this call needs a key");
  throw new CaissonError("FORBIDDEN", `this call needs the scope ${scopeName(scope)}`);
}

const scopeNames = new Map<number, string>(
  Object.entries(Scope).map(([name, scope]) => [scope, name.toLowerCase()]),
);

export function scopeName(scope: Scope): string {
  return scopeNames.get(scope) ?? "unknown";
}
