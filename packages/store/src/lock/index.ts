import { chmodSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { CaissonError } from "@caisson/contract";
import { isBusy } from "../sqlite/errors.ts";

export interface DirectoryLock {
  release(): void;
}

/**
 * Takes a lock that only one process can hold. The kernel drops it when the holder dies, however it
 * dies. Node has no flock, but SQLite's file locks are fcntl locks: an open write transaction is the
 * lock, and readers may still look up who holds it.
 */
export function lockDirectory(file: string): DirectoryLock {
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    chmodSync(file, 0o600);
    // The content is a hint for people; the lock itself needs no disk.
    db.exec("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF");
    db.exec(
      "CREATE TABLE IF NOT EXISTS holder (one INTEGER PRIMARY KEY CHECK (one = 1), pid INTEGER NOT NULL)",
    );
    db.prepare("INSERT INTO holder VALUES (1, ?) ON CONFLICT DO UPDATE SET pid = excluded.pid").run(
      process.pid,
    );
    // Another process may come in between these two; whoever gets this one has the lock.
    db.exec("BEGIN IMMEDIATE");
  } catch (error) {
    const held = isBusy(error);
    const pid = held ? holderOf(db) : 0;
    db.close();
    if (!held) throw error;
    throw new CaissonError(
      "UNAVAILABLE",
      `another daemon${pid ? ` (pid ${pid})` : ""} uses this data directory`,
      {
        cause: error,
        metadata: pid ? { pid: String(pid) } : {},
      },
    );
  }
  return { release: () => db.close() };
}

function holderOf(db: DatabaseSync): number {
  try {
    return Number(db.prepare("SELECT pid FROM holder").get()?.pid ?? 0);
  } catch {
    return 0;
  }
}
