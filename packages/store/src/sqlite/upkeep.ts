import type { DatabaseSync } from "node:sqlite";
import { dropOldest, type Retention } from "./retention.ts";

/**
 * Transactions after which the write-ahead log is folded into the database when nobody commits, and at the
 * latest. Each adds about 20 kB; folding blocks the event loop for a few milliseconds per 100 of them.
 */
const foldAfter = 50;
const foldAtLatest = 400;
const transactionBytes = 20_000;
const quietMs = 200;
const retentionEveryMs = 60_000;

export interface UpkeepOptions {
  db: DatabaseSync;
  /** The size of the write-ahead log that an earlier daemon has left: one that is killed again and again has no time to fold it. */
  leftBytes: number;
  retention: Retention;
  head(): number;
}

/** What the database needs now and then, done when nobody commits. */
export class Upkeep {
  readonly #options: UpkeepOptions;
  /** The count of transactions when it was folded last; below zero, what others have left. */
  #folded: number;
  #transactions = 0;
  #quiet: NodeJS.Timeout | undefined;
  #retention: NodeJS.Timeout | undefined;

  constructor(options: UpkeepOptions) {
    this.#options = options;
    this.#folded = -Math.floor(options.leftBytes / transactionBytes);
    this.#retainLater(1000);
  }

  /** So many transactions have been made in all, and none waits to be made. */
  idle(transactions: number): void {
    this.#transactions = transactions;
    const unfolded = transactions - this.#folded;
    if (unfolded < foldAfter) return;
    if (unfolded >= foldAtLatest) this.#fold();
    else if (this.#quiet) this.#quiet.refresh();
    else this.#quiet = setTimeout(() => this.#fold(), quietMs).unref();
  }

  stop(): void {
    clearTimeout(this.#quiet);
    clearTimeout(this.#retention);
  }

  #fold(): void {
    this.#folded = this.#transactions;
    try {
      this.#options.db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    } catch {
      // A checkpoint is an optimisation; the next one may succeed, and commits report real trouble.
    }
  }

  #retainLater(ms: number): void {
    this.#retention = setTimeout(() => {
      const { db, retention, head } = this.#options;
      let more = false;
      try {
        more = dropOldest(db, retention, head(), Date.now());
      } catch {
        // A locked or full database: tried again with the next round.
      }
      this.#retainLater(more ? 10 : retentionEveryMs);
    }, ms).unref();
  }
}
