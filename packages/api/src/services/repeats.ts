import { hash } from "node:crypto";
import type { DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { CaissonError, type CallContext, rules } from "@caisson/contract";
import { decodeMessage, encodeMessage } from "@caisson/contract/codec";
import type { Store } from "@caisson/store";
import { checkKey } from "./check.ts";

/** Shares its table, and so its upkeep, with the engine's own keys. */
const kind = "idempotency";

interface Remembered {
  fingerprint: string;
  at: number;
  /** The first answer, in base64. */
  answer: string;
}

/**
 * Gives a repeated call the first one's answer. For calls that the engine does not recognise itself
 * because doing them twice is harmless: it is the answer that would differ.
 */
export class Repeats {
  readonly #store: Store;
  readonly #underWay = new Map<string, { fingerprint: string; answer: Promise<unknown> }>();

  constructor(store: Store) {
    this.#store = store;
  }

  async once<M extends DescMethod>(
    method: M,
    request: MessageShape<M["input"]> & { idempotencyKey: string },
    call: CallContext,
    act: () => Promise<MessageInitShape<M["output"]>>,
  ): Promise<MessageInitShape<M["output"]>> {
    if (checkKey(request.idempotencyKey) === "") return await act();
    const key = hash("sha256", JSON.stringify(["api", call.actor, method.name, request.idempotencyKey]));
    const fingerprint = hash("sha256", encodeMessage(method.input, request as never));
    const before = this.#underWay.get(key) ?? this.#remembered(key);
    if (before !== undefined) {
      if (before.fingerprint !== fingerprint) {
        throw new CaissonError("IDEMPOTENCY_CONFLICT", "this idempotency key was used for another request");
      }
      if (typeof before.answer !== "string") return (await before.answer) as MessageInitShape<M["output"]>;
      return decodeMessage(method.output, Buffer.from(before.answer, "base64")) as MessageInitShape<
        M["output"]
      >;
    }
    const answer = this.#act(method, key, fingerprint, act);
    this.#underWay.set(key, { fingerprint, answer });
    try {
      return await answer;
    } finally {
      this.#underWay.delete(key);
    }
  }

  async #act<M extends DescMethod>(
    method: M,
    key: string,
    fingerprint: string,
    act: () => Promise<MessageInitShape<M["output"]>>,
  ): Promise<MessageInitShape<M["output"]>> {
    const answer = await act();
    const bytes = Buffer.from(encodeMessage(method.output, answer as never)).toString("base64");
    const value: Remembered = { fingerprint, at: Date.now(), answer: bytes };
    await this.#store.commit([], [{ put: kind, key, value }]);
    return answer;
  }

  #remembered(key: string): Remembered | undefined {
    const value = this.#store.get<Remembered>(kind, key);
    const fresh = value !== undefined && Date.now() - value.at < rules.times.idempotency_window_s * 1000;
    return fresh ? value : undefined;
  }
}
