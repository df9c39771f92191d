import { chmodSync, closeSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isBusy, isCorrupt, storageError } from "./errors.ts";
import { checkIntegrity } from "./integrity.ts";
import { migrate } from "./migrations.ts";
import { checkWal } from "./wal.ts";

/** A write-ahead log that was folded keeps no more of its file than this. */
const keptLogBytes = 16 * 1024 * 1024;
/** How long opening waits for another process that has locked the log. */
const openTimeoutMs = 3000;

export interface Connection {
  readonly db: DatabaseSync;
  /** A descriptor of the write-ahead log, for syncing it outside the event loop. */
  readonly walFd: number;
}

/**
 * Opens the database for one writer. SQLite itself appends to its write-ahead log without a sync
 * (`synchronous = NORMAL`: it still syncs around checkpoints); the writer syncs that file in the
 * thread pool before it acknowledges anything. Together this is what `synchronous = FULL` gives,
 * without blocking the event loop and with one sync for many commits.
 */
export function openConnection(file: string): Connection {
  checkWal(file);
  const db = new DatabaseSync(file, { timeout: openTimeoutMs });
  try {
    chmodSync(file, 0o600);
    db.exec("PRAGMA journal_mode = WAL");
    db.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY");
    db.exec(`PRAGMA journal_size_limit = ${keptLogBytes}`);
    checkIntegrity(db, file);
    migrate(db);
    // From here on waiting happens in the writer, with timers, not inside SQLite.
    db.exec("PRAGMA busy_timeout = 0");
    // The file's name must be on disk before anything in it counts as being there.
    syncDirectory(dirname(file));
    return { db, walFd: openSync(`${file}-wal`, "r+") };
  } catch (error) {
    db.close();
    throw isBusy(error) || isCorrupt(error) ? storageError(error) : (error as Error);
  }
}

function syncDirectory(dir: string): void {
  const fd = openSync(dir, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
