import { ApprovalState, rules } from "@caisson/contract";
import type { StateChange, Store } from "@caisson/store";
import type { ApprovalRecord } from "./approval.ts";

const kind = "approval";
const mostKept = 1000;

/** Every approval of the last day, those that wait included. */
export class ApprovalHistory {
  /** Oldest first. */
  readonly #records: Map<string, ApprovalRecord>;

  constructor(store: Store) {
    const records = [...store.scan<ApprovalRecord>(kind)].map(([, record]) => record);
    records.sort((a, b) => a.requestedAt - b.requestedAt);
    this.#records = new Map(records.map((record) => [record.id, record]));
  }

  get(id: string): ApprovalRecord | undefined {
    return this.#records.get(id);
  }

  newestFirst(): ApprovalRecord[] {
    return [...this.#records.values()].reverse();
  }

  /** The change that keeps a record as it is now. */
  put(record: ApprovalRecord): StateChange {
    this.#records.set(record.id, record);
    return { put: kind, key: record.id, value: { ...record } };
  }

  /** The changes that drop what is too old or too much; never one that waits. */
  prune(now: number): StateChange[] {
    const changes: StateChange[] = [];
    let over = this.#records.size - mostKept;
    for (const record of this.#records.values()) {
      const old = now - record.requestedAt > rules.times.kept_after_end_s * 1000;
      if (!old && over <= 0) break;
      if (record.state === ApprovalState.PENDING) continue;
      over--;
      this.#records.delete(record.id);
      changes.push({ remove: kind, key: record.id });
    }
    return changes;
  }
}
