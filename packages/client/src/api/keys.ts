import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { toSeconds } from "../values/numbers.ts";
import { type Key, keyFrom, type Scope, scopeNumber } from "../values/system.ts";

export interface CreateKeyOptions extends CallOptions {
  /** Default: read and write. */
  scopes?: Scope[] | undefined;
  /** Milliseconds until it expires. Default: never. */
  ttl?: number | undefined;
}

/** Keys for the network. */
export class Keys {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Makes a key; its secret is shown this once. */
  async create(
    name: string,
    { scopes = [], ttl, ...options }: CreateKeyOptions = {},
  ): Promise<Key & { secret: string }> {
    const request = { name, scopes: scopes.map(scopeNumber), ttlS: toSeconds(ttl) };
    const { key, secret } = await this.#caller.unary((c) => c.KeyService.method.createKey, request, options);
    if (!key) throw new CaissonError("INTERNAL", "the server answered without the key");
    return { ...keyFrom(key), secret };
  }

  async list(options?: CallOptions): Promise<Key[]> {
    const { keys } = await this.#caller.unary((c) => c.KeyService.method.listKeys, {}, options);
    return keys.map(keyFrom);
  }

  async revoke(name: string, options?: CallOptions): Promise<void> {
    await this.#caller.unary((c) => c.KeyService.method.revokeKey, { name }, options);
  }
}
