import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { StateChange } from "../store.ts";

const pageSize = 500;
/** Sorts after every key that begins with a prefix, when put behind that prefix. */
const last = "\u{10FFFF}";

/** The state table: one JSON value per kind and key. */
export class StateTable {
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #get: StatementSync;
  readonly #firstPage: StatementSync;
  readonly #nextPage: StatementSync;

  constructor(db: DatabaseSync) {
    this.#put = db.prepare(
      "INSERT INTO state VALUES (?, ?, ?) ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
    );
    this.#remove = db.prepare("DELETE FROM state WHERE kind = ? AND key = ?");
    this.#get = db.prepare("SELECT value FROM state WHERE kind = ? AND key = ?");
    const page = (after: string) =>
      db.prepare(
        `SELECT key, value FROM state WHERE kind = ? AND key ${after} ? AND key < ? ORDER BY key LIMIT ${pageSize}`,
      );
    this.#firstPage = page(">=");
    this.#nextPage = page(">");
  }

  apply(change: PreparedChange): void {
    if (change.json === undefined) this.#remove.run(change.kind, change.key);
    else this.#put.run(change.kind, change.key, change.json);
  }

  get(kind: string, key: string): unknown {
    const row = this.#get.get(kind, key);
    return row ? JSON.parse(row.value as string) : undefined;
  }

  /** Reads in pages, so that an unfinished scan holds no read transaction. */
  *scan(kind: string, prefix: string): Generator<[string, unknown]> {
    let rows = this.#firstPage.all(kind, prefix, prefix + last);
    while (true) {
      for (const row of rows) yield [row.key as string, JSON.parse(row.value as string)];
      if (rows.length < pageSize) return;
      rows = this.#nextPage.all(kind, rows.at(-1)!.key as string, prefix + last);
    }
  }
}

export interface PreparedChange {
  kind: string;
  key: string;
  /** The new value, or undefined to remove it. */
  json: string | undefined;
}

export function prepareChange(change: StateChange): PreparedChange {
  if ("remove" in change) return { kind: change.remove, key: change.key, json: undefined };
  const json = JSON.stringify(change.value);
  if (json === undefined) throw new TypeError(`a value of kind ${change.put} cannot be kept as JSON`);
  return { kind: change.put, key: change.key, json };
}
