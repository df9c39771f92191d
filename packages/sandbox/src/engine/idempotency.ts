import { hash } from "node:crypto";
import { CaissonError, rules } from "@caisson/contract";
import { canonicalJson, type StateChange, type Store } from "@caisson/store";
import { kinds } from "./records.ts";

/** What a call made. */
export interface CallResult {
  sandboxId: string;
  processId?: string;
}

interface Remembered extends CallResult {
  fingerprint: string;
  at: number;
}

export interface KeyedCall<T> {
  /** Empty: the call is not recognised when it is repeated. */
  key: string;
  /** Who calls what on what: the same key elsewhere is another key. */
  scope: readonly string[];
  /** The request, as JSON; another one under the same key is a conflict. */
  request(): unknown;
  /** Does it. `remember` gives the change to be stored in the transaction that records the result. */
  act(remember: (result: CallResult) => StateChange[]): Promise<T>;
  /** Finds what the first call made. */
  find(result: CallResult): Promise<T>;
}

const maxKeyBytes = 255;

/** Lets a repeated call have the first one's result instead of doing it twice. */
export class Idempotency {
  readonly #store: Store;
  readonly #underWay = new Map<string, { fingerprint: string; result: Promise<unknown> }>();

  constructor(store: Store) {
    this.#store = store;
  }

  async once<T>(call: KeyedCall<T>): Promise<T> {
    if (call.key === "") return call.act(() => []);
    if (Buffer.byteLength(call.key) > maxKeyBytes) {
      throw new CaissonError("INVALID_INPUT", `an idempotency key has at most ${maxKeyBytes} bytes`);
    }
    const key = hash("sha256", JSON.stringify([...call.scope, call.key]));
    const fingerprint = hash("sha256", canonicalJson(call.request()));
    const before = this.#underWay.get(key) ?? this.#remembered(key);
    if (before) {
      if (before.fingerprint !== fingerprint) {
        throw new CaissonError("IDEMPOTENCY_CONFLICT", "this idempotency key was used for another request");
      }
      return "result" in before ? (before.result as Promise<T>) : call.find(before);
    }
    const result = call.act((made) => [
      { put: kinds.idempotency, key, value: { ...made, fingerprint, at: Date.now() } satisfies Remembered },
    ]);
    this.#underWay.set(key, { fingerprint, result });
    try {
      return await result;
    } finally {
      this.#underWay.delete(key);
    }
  }

  /** Changes that drop the keys whose time is over. */
  expired(): StateChange[] {
    const changes: StateChange[] = [];
    for (const [key, value] of this.#store.scan<Remembered>(kinds.idempotency)) {
      if (!isFresh(value)) changes.push({ remove: kinds.idempotency, key });
    }
    return changes;
  }

  #remembered(key: string): Remembered | undefined {
    const value = this.#store.get<Remembered>(kinds.idempotency, key);
    return value && isFresh(value) ? value : undefined;
  }
}

function isFresh(value: Remembered): boolean {
  return Date.now() - value.at < rules.times.idempotency_window_s * 1000;
}
