import type { DatabaseSync } from "node:sqlite";

export interface Retention {
  /** Events kept at most. Default: 1,000,000. */
  maxEvents: number;
  /** Milliseconds for which an event is kept at most. Default: 90 days. */
  maxAgeMs: number;
}

export const defaultRetention: Retention = { maxEvents: 1_000_000, maxAgeMs: 90 * 24 * 3600 * 1000 };

/** Rows removed in one transaction, so that the event loop is not held up. */
const slice = 1000;

/**
 * Drops the oldest events beyond the bounds, a slice at a time; returns true if there is more to
 * drop. The anchor keeps the hash that the first kept event chains to, so that the rest of the
 * chain can still be verified.
 */
export function dropOldest(db: DatabaseSync, retention: Retention, head: number, now: number): boolean {
  const anchor = db.prepare("SELECT first FROM anchor").get();
  const first = Number(anchor?.first ?? 1);
  const last = Math.min(first + slice - 1, head);
  const byCount = head - retention.maxEvents;
  const young = db
    .prepare("SELECT seq FROM event WHERE seq >= ? AND seq <= ? AND at >= ? ORDER BY seq LIMIT 1")
    .get(first, last, now - retention.maxAgeMs);
  const byAge = young ? Number(young.seq) - 1 : last;
  const drop = Math.min(Math.max(byCount, byAge), last);
  if (drop < first) return false;
  db.exec("BEGIN IMMEDIATE");
  try {
    db.prepare("UPDATE anchor SET first = ?, previous = (SELECT hash FROM event WHERE seq = ?)").run(
      drop + 1,
      drop,
    );
    db.prepare("DELETE FROM event WHERE seq <= ?").run(drop);
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
  return drop === last && last < head;
}
