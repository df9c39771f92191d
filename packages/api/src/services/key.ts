import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { KeyService, Scope, type ServedService, serve } from "@caisson/contract";
import type { KeyRecord, Keys } from "../auth/keys.ts";
import { checkKeyName, invalid } from "./check.ts";

const grantable: readonly Scope[] = [Scope.READ, Scope.WRITE, Scope.APPROVE, Scope.ADMIN, Scope.ALL];

export function keyService(keys: Keys): ServedService {
  return serve(KeyService, {
    async createKey(request, call) {
      const scopes = request.scopes.length === 0 ? [Scope.READ, Scope.WRITE] : [...new Set(request.scopes)];
      if (scopes.some((scope) => !grantable.includes(scope))) {
        throw invalid("`scopes` may hold SCOPE_READ, SCOPE_WRITE, SCOPE_APPROVE, SCOPE_ADMIN and SCOPE_ALL");
      }
      const made = await keys.create(checkKeyName(request.name), scopes, request.ttlS, call.actor);
      return { key: describe(made.key), secret: made.secret };
    },
    async listKeys() {
      return { keys: keys.list().map(describe) };
    },
    async revokeKey(request, call) {
      await keys.revoke(checkKeyName(request.name), call.actor);
      return {};
    },
  });
}

function describe(key: KeyRecord) {
  return {
    name: key.name,
    scopes: key.scopes,
    createdAt: timestampFromMs(key.createdAt),
    ...(key.expiresAt === 0 ? {} : { expiresAt: timestampFromMs(key.expiresAt) }),
    ...(key.lastUsedAt === 0 ? {} : { lastUsedAt: timestampFromMs(key.lastUsedAt) }),
  };
}
