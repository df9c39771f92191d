import type { StateChange, Store } from "@caisson/store";
import type { Question } from "./approval.ts";

const kind = "approval_grant";

type Asked = Pick<Question, "sandboxId" | "kind" | "subject">;

export interface Grant {
  allow: boolean;
  by: string;
}

/** Answers that hold for one sandbox as long as it lives, also across restarts of the daemon. */
export class Grants {
  readonly #store: Store;
  /** By sandbox, as far as somebody has asked. */
  readonly #loaded = new Map<string, Map<string, Grant>>();

  constructor(store: Store) {
    this.#store = store;
  }

  find(asked: Asked): Grant | undefined {
    return this.#of(asked.sandboxId).get(keyOf(asked));
  }

  /** The change that keeps an answer; it counts once it is remembered. */
  change(asked: Asked, answer: Grant): StateChange {
    return { put: kind, key: keyOf(asked), value: answer };
  }

  remember(asked: Asked, answer: Grant): void {
    this.#of(asked.sandboxId).set(keyOf(asked), answer);
  }

  /** The changes that drop everything of a sandbox that has ended. */
  drop(sandboxId: string): StateChange[] {
    const keys = [...this.#of(sandboxId).keys()];
    this.#loaded.delete(sandboxId);
    return keys.map((key) => ({ remove: kind, key }));
  }

  #of(sandboxId: string): Map<string, Grant> {
    const loaded = this.#loaded.get(sandboxId);
    if (loaded) return loaded;
    const found = new Map(sandboxId === "" ? [] : this.#store.scan<Grant>(kind, `${sandboxId}/`));
    this.#loaded.set(sandboxId, found);
    return found;
  }
}

function keyOf({ sandboxId, kind: what, subject }: Asked): string {
  return `${sandboxId}/${what}/${subject}`;
}
