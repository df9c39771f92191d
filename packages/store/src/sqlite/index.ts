import { closeSync, fdatasyncSync, fstatSync, statSync } from "node:fs";
import type { EventQuery, NewEvent, StateChange, Store, StoredEvent, Verification } from "../store.ts";
import { AheadFile, appliedKey } from "./ahead.ts";
import { type Connection, openConnection } from "./connection.ts";
import { corruptLog } from "./errors.ts";
import { Feed } from "./feed.ts";
import { EventLog } from "./log.ts";
import { defaultRetention, type Retention } from "./retention.ts";
import { StateTable } from "./state.ts";
import { Upkeep } from "./upkeep.ts";
import { Writer, type WriterOptions } from "./writer.ts";

export interface SqliteStoreOptions {
  /** The database file; its directory is the daemon's alone. */
  file: string;
  retention?: Partial<Retention>;
  /** Replaced in tests that let a sync fail. */
  sync?: WriterOptions["sync"];
}

/** Events at the log's end whose chain is checked at every start. */
const checkedAtOpen = 1000;

/** Opens the log and checks it; damage is CORRUPT_LOG, and docs/recovery.md says what to do. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const store = new SqliteStore(options);
  const checked = await store.verify(Math.max(0, store.head - checkedAtOpen));
  if (checked.intact) return store;
  await store.close();
  throw corruptLog(
    `event ${checked.brokenAt} of the log is damaged: ${checked.reason}; follow docs/recovery.md`,
  );
}

class SqliteStore implements Store {
  readonly #file: string;
  readonly #connection: Connection;
  readonly #log: EventLog;
  readonly #state: StateTable;
  readonly #ahead: AheadFile;
  readonly #feed: Feed;
  readonly #writer: Writer;
  readonly #upkeep: Upkeep;

  constructor(options: SqliteStoreOptions) {
    this.#file = options.file;
    this.#connection = openConnection(options.file);
    const { db, walFd } = this.#connection;
    this.#log = new EventLog(db);
    this.#state = new StateTable(db);
    this.#ahead = this.#openAhead();
    this.#feed = new Feed(this.#log.tail.seq, (query) => this.read(query));
    this.#upkeep = new Upkeep({
      db,
      leftBytes: fstatSync(walFd).size,
      retention: { ...defaultRetention, ...options.retention },
      head: () => this.head,
    });
    this.#writer = new Writer({
      db,
      walFd,
      log: this.#log,
      state: this.#state,
      ahead: this.#ahead,
      published: (events) => this.#feed.publish(events),
      idle: (transactions) => this.#upkeep.idle(transactions),
      ...(options.sync ? { sync: options.sync } : {}),
    });
  }

  /** Brings in what an earlier daemon had no time for. */
  #openAhead(): AheadFile {
    const { db } = this.#connection;
    const done = Number(this.#state.get(...appliedKey) ?? 0);
    const { ahead, missing } = AheadFile.open(`${this.#file}-ahead`, done);
    if (missing.length > 0) {
      db.exec("BEGIN IMMEDIATE");
      for (const { events, changes } of missing) {
        for (const event of events) this.#log.append(event);
        for (const change of changes) this.#state.apply(change);
      }
      this.#state.apply(ahead.appliedChange());
      db.exec("COMMIT");
      fdatasyncSync(this.#connection.walFd);
    }
    ahead.clear(0);
    return ahead;
  }

  get head(): number {
    return this.#feed.head;
  }

  commit(
    events: NewEvent[],
    changes: StateChange[] = [],
    options: { withinMs?: number } = {},
  ): Promise<StoredEvent[]> {
    return this.#writer.commit(events, changes, options.withinMs ?? 0);
  }

  flush(): boolean {
    return this.#writer.flush();
  }

  get<T>(kind: string, key: string): T | undefined {
    this.#writer.settle();
    return this.#state.get(kind, key) as T | undefined;
  }

  scan<T>(kind: string, prefix = ""): Iterable<[string, T]> {
    this.#writer.settle();
    return this.#state.scan(kind, prefix) as Iterable<[string, T]>;
  }

  read(query: EventQuery): StoredEvent[] {
    return this.#log.read(query, this.head);
  }

  subscribe(query: Omit<EventQuery, "limit">, signal: AbortSignal): AsyncIterable<StoredEvent> {
    return this.#feed.subscribe(query, signal);
  }

  verify(from: number): Promise<Verification> {
    return this.#log.verify(from, this.head);
  }

  trouble(): string | undefined {
    return this.#writer.trouble();
  }

  size(): number {
    return [this.#file, `${this.#file}-wal`].reduce(
      (bytes, file) => bytes + (statSync(file, { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
  }

  async close(): Promise<void> {
    await this.#writer.close();
    this.#upkeep.stop();
    this.#feed.close();
    this.#ahead.close();
    closeSync(this.#connection.walFd);
    this.#connection.db.close();
  }
}
