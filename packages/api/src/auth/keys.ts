import { createHash, randomBytes } from "node:crypto";
import { CaissonError, type Scope } from "@caisson/contract";
import type { Store } from "@caisson/store";

/** A key for the network, without its secret. Times in milliseconds since the epoch, 0 for never. */
export interface KeyRecord {
  name: string;
  scopes: Scope[];
  createdAt: number;
  expiresAt: number;
  lastUsedAt: number;
}

export interface Keys {
  create(
    name: string,
    scopes: Scope[],
    ttlS: number,
    actor: string,
  ): Promise<{ key: KeyRecord; secret: string }>;
  list(): KeyRecord[];
  revoke(name: string, actor: string): Promise<void>;
  /** The key that this secret opens, if it is one that is still valid. */
  find(secret: string): KeyRecord | undefined;
}

interface StoredKey extends KeyRecord {
  /** SHA-256 of the secret, in hex. The secret has 256 random bits, so nothing slower is needed. */
  hash: string;
}

const prefix = "csn_";
const kind = "key";
/** The time of a key's last use is written at most so often. */
const useNotedEveryMs = 60_000;

/** Keys in the store; secrets are hashed and never kept. */
export function createKeys(store: Store, now: () => number = Date.now): Keys {
  const byHash = new Map<string, StoredKey>();
  for (const [, key] of store.scan<StoredKey>(kind)) byHash.set(key.hash, key);
  const named = (name: string) => store.get<StoredKey>(kind, name.toLowerCase());

  return {
    async create(name, scopes, ttlS, actor) {
      if (named(name) !== undefined) throw new CaissonError("KEY_EXISTS", "there is a key of that name");
      const secret = prefix + randomBytes(32).toString("base64url");
      const createdAt = now();
      const key: StoredKey = {
        name,
        scopes,
        createdAt,
        expiresAt: ttlS === 0 ? 0 : createdAt + ttlS * 1000,
        lastUsedAt: 0,
        hash: hashOf(secret),
      };
      await store.commit(
        [{ type: "key.created", actor, data: { name, scopes } }],
        [{ put: kind, key: name.toLowerCase(), value: key }],
      );
      byHash.set(key.hash, key);
      return { key: withoutHash(key), secret };
    },
    list: () => [...store.scan<StoredKey>(kind)].map(([, key]) => withoutHash(byHash.get(key.hash) ?? key)),
    async revoke(name, actor) {
      const key = named(name);
      if (key === undefined) throw new CaissonError("KEY_NOT_FOUND", "there is no key of that name");
      // It stops working now, whatever becomes of the write.
      byHash.delete(key.hash);
      await store.commit(
        [{ type: "key.revoked", actor, data: { name: key.name } }],
        [{ remove: kind, key: name.toLowerCase() }],
      );
    },
    find(secret) {
      if (!secret.startsWith(prefix)) return undefined;
      const key = byHash.get(hashOf(secret));
      if (key === undefined || (key.expiresAt !== 0 && key.expiresAt <= now())) return undefined;
      noteUse(store, key, now());
      return withoutHash(key);
    },
  };
}

function noteUse(store: Store, key: StoredKey, at: number): void {
  if (at - key.lastUsedAt < useNotedEveryMs) return;
  key.lastUsedAt = at;
  const stored = store.get<StoredKey>(kind, key.name.toLowerCase());
  if (stored?.hash !== key.hash) return;
  // A convenience for people: a call does not wait for it, nor fail with it.
  store.commit([], [{ put: kind, key: key.name.toLowerCase(), value: key }]).catch(() => {});
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

function withoutHash({ hash: _, ...key }: StoredKey): KeyRecord {
  return key;
}
