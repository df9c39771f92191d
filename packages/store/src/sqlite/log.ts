import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { EventQuery, NewEvent, StoredEvent, Verification } from "../store.ts";
import { canonicalJson, chainHash } from "./chain.ts";
import { corruptLog } from "./errors.ts";

const maxPage = 1000;
/** Events that `verify` checks before it lets others have the event loop. */
const verifySlice = 500;

interface Row {
  seq: number;
  at: number;
  type: string;
  actor: string;
  sandbox: string;
  process: string;
  data: string;
  hash: Uint8Array;
}

/** The event table: appending to it inside the writer's transaction, reading and verifying it. */
export class EventLog {
  readonly #db: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #page: StatementSync;
  readonly #pageOfSandbox: StatementSync;
  /** Of the latest event in the table, whether it is on disk yet or not. */
  #tail: { seq: number; hash: Uint8Array };

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#insert = db.prepare("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    this.#page = db.prepare("SELECT * FROM event WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?");
    this.#pageOfSandbox = db.prepare(
      "SELECT * FROM event WHERE sandbox = ? AND sandbox <> '' AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
    );
    this.#tail = this.#readTail();
  }

  get tail(): { seq: number; hash: Uint8Array } {
    return this.#tail;
  }

  /** After a transaction that was rolled back. */
  resetTail(tail: { seq: number; hash: Uint8Array }): void {
    this.#tail = tail;
  }

  append(event: PreparedEvent): StoredEvent {
    const fields = { ...event.fields, seq: this.#tail.seq + 1, dataJson: event.dataJson };
    const hash = chainHash(this.#tail.hash, fields);
    const { seq, at, type, actor, sandboxId, processId } = fields;
    this.#insert.run(seq, at, type, actor, sandboxId, processId, event.dataJson, hash);
    this.#tail = { seq, hash };
    return { seq, at, type, actor, sandboxId, processId, data: event.data, hash };
  }

  /** Events after `query.from` and up to number `to`. */
  read(query: EventQuery, to: number): StoredEvent[] {
    const limit = Math.min(query.limit ?? maxPage, maxPage);
    const found: StoredEvent[] = [];
    let from = query.from;
    while (found.length < limit) {
      const rows = this.#rows(query.sandboxId, from, to, query.types ? maxPage : limit - found.length);
      for (const row of rows) {
        if (found.length < limit && matches(query, row.type, row.sandbox)) found.push(toEvent(row));
      }
      if (rows.length === 0 || !query.types) break;
      from = rows.at(-1)!.seq;
    }
    return found;
  }

  async verify(from: number, to: number): Promise<Verification> {
    const { first, previous } = this.anchor();
    let at = Math.max(from, first - 1);
    let expected = at >= first ? this.#hashOf(at) : previous;
    if (!expected) return failure(at, 0, "the event is missing", previous);
    let checked = 0;
    while (at < to) {
      const rows = this.#rows(undefined, at, to, verifySlice);
      // Retention may have moved on while others had the event loop; a missing row is judged below.
      for (const row of rows) {
        if (row.seq !== at + 1) return failure(at + 1, checked, "the event is missing", expected);
        const hash = chainHash(expected, { ...toFields(row), dataJson: row.data });
        if (!Buffer.from(hash).equals(row.hash)) {
          return failure(
            row.seq,
            checked,
            "its hash does not fit the event before it and its content",
            expected,
          );
        }
        at = row.seq;
        expected = hash;
        checked++;
      }
      if (rows.length === 0) return failure(at + 1, checked, "the event is missing", expected);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { intact: true, checked, brokenAt: 0, reason: "", head: expected };
  }

  /** The number of the first kept event and the hash that it chains to. */
  anchor(): { first: number; previous: Uint8Array } {
    const row = this.#db.prepare("SELECT first, previous FROM anchor").get();
    if (!row) throw corruptLog("the log has lost its anchor; stop and follow docs/recovery.md");
    return { first: Number(row.first), previous: row.previous as Uint8Array };
  }

  #rows(sandboxId: string | undefined, from: number, to: number, limit: number): Row[] {
    const rows = sandboxId
      ? this.#pageOfSandbox.all(sandboxId, from, to, limit)
      : this.#page.all(from, to, limit);
    return rows as unknown as Row[];
  }

  #hashOf(seq: number): Uint8Array | undefined {
    return this.#db.prepare("SELECT hash FROM event WHERE seq = ?").get(seq)?.hash as Uint8Array | undefined;
  }

  #readTail(): { seq: number; hash: Uint8Array } {
    const row = this.#db.prepare("SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1").get();
    if (row) return { seq: Number(row.seq), hash: row.hash as Uint8Array };
    const { first, previous } = this.anchor();
    return { seq: first - 1, hash: previous };
  }
}

/** An event that has been checked and spelled; only its number and hash are missing. */
export interface PreparedEvent {
  fields: Omit<StoredEvent, "seq" | "hash" | "data">;
  data: Record<string, unknown>;
  dataJson: string;
}

export function prepareEvent(event: NewEvent): PreparedEvent {
  const dataJson = canonicalJson(event.data ?? {});
  return {
    fields: {
      at: Date.now(),
      type: event.type.toWellFormed(),
      actor: event.actor.toWellFormed(),
      sandboxId: event.sandboxId ?? "",
      processId: event.processId ?? "",
    },
    // What subscribers see is what a later reader of the table sees.
    data: JSON.parse(dataJson),
    dataJson,
  };
}

export function matches(
  query: Pick<EventQuery, "sandboxId" | "types">,
  type: string,
  sandboxId: string,
): boolean {
  if (query.sandboxId && query.sandboxId !== sandboxId) return false;
  return !query.types?.length || query.types.some((prefix) => type.startsWith(prefix));
}

function toFields(row: Row): Omit<StoredEvent, "hash" | "data"> {
  const { seq, at, type, actor, sandbox, process } = row;
  return { seq, at, type, actor, sandboxId: sandbox, processId: process };
}

function toEvent(row: Row): StoredEvent {
  return { ...toFields(row), data: JSON.parse(row.data), hash: row.hash };
}

function failure(brokenAt: number, checked: number, reason: string, head: Uint8Array): Verification {
  return { intact: false, checked, brokenAt, reason, head };
}
