import { fdatasync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { CaissonError } from "@caisson/contract";
import { type NewEvent, type StateChange, type StoredEvent, soonMs } from "../store.ts";
import type { AheadFile } from "./ahead.ts";
import { isBusy, storageError } from "./errors.ts";
import { type EventLog, type PreparedEvent, prepareEvent } from "./log.ts";
import { type PreparedChange, prepareChange, type StateTable } from "./state.ts";

/** How long commits wait for a process that has locked the database before they are refused. */
const busyLimitMs = 5000;
const busyRetryMs = 20;

interface Commit {
  events: PreparedEvent[];
  changes: PreparedChange[];
  resolve(stored: StoredEvent[]): void;
  reject(error: unknown): void;
  stored: StoredEvent[];
  /** It was flushed: it is in the file ahead of the database. */
  noted: boolean;
}

export interface WriterOptions {
  db: DatabaseSync;
  walFd: number;
  log: EventLog;
  state: StateTable;
  ahead: AheadFile;
  /** Called when events are on disk, before their commits resolve. */
  published(events: StoredEvent[]): void;
  /** Called after each sync, when nothing else is waiting. */
  idle(transactions: number): void;
  /** Replaced in tests that let a sync fail. */
  sync?: (fd: number, done: (error: Error | null) => void) => void;
}

/**
 * Group commit. Commits of one turn of the event loop share a transaction; transactions made while
 * the disk is syncing share the next sync, which runs in the thread pool.
 */
export class Writer {
  readonly #options: WriterOptions;
  #queue: Commit[] = [];
  #written: Commit[] = [];
  #scheduled = false;
  /** Something in the queue was flushed. */
  #noted = false;
  #timer: NodeJS.Timeout | undefined;
  #due = 0;
  #syncing = false;
  #busySince = 0;
  #transactions = 0;
  #closed = false;
  #failed: CaissonError | undefined;
  #full: CaissonError | undefined;
  #drained: (() => void)[] = [];

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  commit(events: NewEvent[], changes: StateChange[], withinMs: number): Promise<StoredEvent[]> {
    return new Promise((resolve, reject) => {
      if (this.#failed) throw this.#failed;
      if (this.#closed) throw new CaissonError("UNAVAILABLE", "the log is closed");
      const prepared = { events: events.map(prepareEvent), changes: changes.map(prepareChange) };
      this.#queue.push({ ...prepared, resolve, reject, stored: [], noted: false });
      if (withinMs > 0) this.#scheduleWithin(withinMs);
      else this.#schedule();
    });
  }

  flush(): boolean {
    if (this.#busySince || this.#failed) return false;
    const fresh = this.#queue.filter((commit) => !commit.noted);
    if (fresh.length === 0) return true;
    try {
      this.#options.ahead.note(fresh.map(({ events, changes }) => ({ events, changes })));
    } catch {
      // The transaction says what is wrong with the disk.
      return this.#flush();
    }
    for (const commit of fresh) commit.noted = true;
    this.#noted = true;
    // It survives the daemon's death already; whoever waits for the disk has asked for a turn of his own.
    this.#scheduleWithin(soonMs);
    return true;
  }

  /** Makes the transaction of what was flushed, for somebody who wants to read it. */
  settle(): void {
    if (this.#noted && !this.#busySince && !this.#failed) this.#flush();
  }

  /** Why commits are refused at the moment. */
  trouble(): string | undefined {
    const trouble = this.#failed ?? this.#full;
    return trouble?.message ?? (this.#busySince ? "another process has locked the log" : undefined);
  }

  /** Takes no more; resolves when everything that was committed is on disk or refused. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#queue.length > 0) this.#schedule();
    while (this.#queue.length > 0 || this.#written.length > 0 || this.#syncing) {
      await new Promise<void>((resolve) => this.#drained.push(resolve));
    }
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #scheduleWithin(ms: number): void {
    const due = performance.now() + ms;
    if (this.#timer && this.#due <= due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#busySince) this.#flush();
    }, ms);
  }

  /** Everything queued in one transaction; false if it was not made. */
  #flush(): boolean {
    if (this.#queue.length === 0) return true;
    const batch = this.#queue;
    const { db, log, ahead } = this.#options;
    const tail = log.tail;
    try {
      db.exec("BEGIN IMMEDIATE");
      for (const commit of batch) this.#apply(commit);
      if (this.#noted) this.#options.state.apply(ahead.appliedChange());
      db.exec("COMMIT");
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      log.resetTail(tail);
      if (isBusy(error) && this.#waitForLock()) return false;
      this.#queue = [];
      this.#busySince = 0;
      this.#clearAhead(0);
      this.#refuse(batch, storageError(error));
      return false;
    }
    this.#queue = [];
    this.#busySince = 0;
    this.#full = undefined;
    this.#transactions++;
    this.#written.push(...batch);
    this.#clearAhead();
    this.#sync();
    return true;
  }

  /** Should it fail, the notes' numbers say that they are not to be applied again. */
  #clearAhead(atBytes?: number): void {
    this.#noted = false;
    try {
      this.#options.ahead.clear(atBytes);
    } catch (error) {
      this.#failed ??= storageError(error);
    }
  }

  #apply(commit: Commit): void {
    commit.stored = commit.events.map((event) => this.#options.log.append(event));
    for (const change of commit.changes) this.#options.state.apply(change);
  }

  /** The queue stays as it is and is tried again, until it has waited for too long. */
  #waitForLock(): boolean {
    this.#busySince ||= performance.now();
    if (performance.now() - this.#busySince > busyLimitMs) return false;
    this.#scheduled = true;
    setTimeout(() => {
      this.#scheduled = false;
      this.#flush();
    }, busyRetryMs);
    return true;
  }

  #sync(): void {
    if (this.#syncing) return;
    this.#syncing = true;
    const batch = this.#written;
    this.#written = [];
    const sync = this.#options.sync ?? fdatasync;
    sync(this.#options.walFd, (error) => {
      this.#syncing = false;
      if (error) return this.#fail(error, batch);
      this.#options.published(batch.flatMap((commit) => commit.stored));
      for (const commit of batch) commit.resolve(commit.stored);
      if (this.#written.length > 0) return this.#sync();
      this.#options.idle(this.#transactions);
      this.#wakeDrained();
    });
  }

  /** After a failed sync nobody knows what is on disk, and asking again would get a wrong "yes". */
  #fail(error: Error, batch: Commit[]): void {
    this.#failed = new CaissonError(
      "STORAGE_FAILED",
      "the disk refused to keep the log; restart the daemon",
      {
        cause: error,
      },
    );
    const all = [...batch, ...this.#written, ...this.#queue];
    this.#written = [];
    this.#queue = [];
    this.#refuse(all, this.#failed);
  }

  #refuse(batch: Commit[], error: CaissonError): void {
    if (error.code === "STORAGE_FULL") this.#full = error;
    for (const commit of batch) commit.reject(error);
    this.#wakeDrained();
  }

  #wakeDrained(): void {
    const waiting = this.#drained;
    this.#drained = [];
    for (const wake of waiting) wake();
  }
}
