import type { DatabaseSync } from "node:sqlite";
import { CaissonError } from "@caisson/contract";

/** Each step takes the database from its index to the next version. Steps are never edited, only added. */
const steps: readonly string[] = [
  `
  CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    actor TEXT NOT NULL,
    sandbox TEXT NOT NULL,
    process TEXT NOT NULL,
    data TEXT NOT NULL,
    hash BLOB NOT NULL
  ) STRICT;
  CREATE INDEX event_by_sandbox ON event (sandbox, seq) WHERE sandbox <> '';
  CREATE TABLE state (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, key)
  ) STRICT, WITHOUT ROWID;
  -- What the first kept event chains to: its own number and the hash of the one before it.
  CREATE TABLE anchor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    first INTEGER NOT NULL,
    previous BLOB NOT NULL
  ) STRICT;
  INSERT INTO anchor VALUES (1, 1, zeroblob(32));
  `,
];

export const currentVersion = steps.length;

export function migrate(db: DatabaseSync): void {
  const version = Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
  if (version > currentVersion) {
    throw new CaissonError(
      "VERSION_MISMATCH",
      `the log was written by a newer daemon (format ${version}, this one knows ${currentVersion})`,
    );
  }
  for (let next = version; next < currentVersion; next++) {
    db.exec("BEGIN IMMEDIATE");
    try {
      db.exec(steps[next]!);
      db.exec(`PRAGMA user_version = ${next + 1}`);
      db.exec("COMMIT");
    } catch (error) {
      db.exec("ROLLBACK");
      throw error;
    }
  }
}
