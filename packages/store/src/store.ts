/** How long a commit that nobody waits for may wait for company. */
export const soonMs = 10;

/** An event to append; its number, time and hash come from the store. */
export interface NewEvent {
  type: string;
  actor: string;
  sandboxId?: string;
  processId?: string;
  data?: Record<string, unknown>;
}

export interface StoredEvent extends Required<Omit<NewEvent, "data">> {
  seq: number;
  /** Milliseconds since the epoch. */
  at: number;
  data: Record<string, unknown>;
  hash: Uint8Array;
}

/** A change of state, made in the same transaction as the events that tell of it. */
export type StateChange = { put: string; key: string; value: unknown } | { remove: string; key: string };

export interface EventQuery {
  /** Only events after this number. */
  from: number;
  sandboxId?: string;
  /** Only types that begin with one of these. */
  types?: string[];
  /** Default and maximum: 1000. */
  limit?: number;
}

/** What a check of the hash chain found. */
export interface Verification {
  intact: boolean;
  checked: number;
  /** The first event that does not fit, or 0. */
  brokenAt: number;
  reason: string;
  /** The hash of the last event that was checked. */
  head: Uint8Array;
}

/** The numbered log and the state that derives from it. Members: SQLite. */
export interface Store {
  /** Appends events and changes state in one transaction; resolves when it is on disk. Calls made in
   * the same turn of the event loop, or while a sync runs, share one sync. Events of one call have
   * consecutive numbers. `withinMs`: it may wait so long for company; 0, the default, is this
   * turn of the event loop. */
  commit(
    events: NewEvent[],
    changes?: StateChange[],
    options?: { withinMs?: number },
  ): Promise<StoredEvent[]>;
  /** Hands what was committed so far to the operating system, at once: from here on it survives the
   * daemon's death, and a power cut once `commit` has resolved. False: it could not be done now. */
  flush(): boolean;
  /** One value of a kind (`sandbox`, `process`, `session`, `key`, `idempotency`, `trust`, …). */
  get<T>(kind: string, key: string): T | undefined;
  /** All values of a kind whose key begins with `prefix`, by key. */
  scan<T>(kind: string, prefix?: string): Iterable<[key: string, value: T]>;
  /** Events that are on disk, in order. */
  read(query: EventQuery): StoredEvent[];
  /** Events after `from` as they come, without gap or duplicate, until aborted. */
  subscribe(query: Omit<EventQuery, "limit">, signal: AbortSignal): AsyncIterable<StoredEvent>;
  /** The number of the latest event that is on disk. */
  readonly head: number;
  /** Checks the hash chain after `from`, in slices, so that nothing else waits for it. */
  verify(from: number): Promise<Verification>;
  /** What the store cannot do at the moment, as a sentence, or undefined. */
  trouble(): string | undefined;
  /** Bytes on disk. */
  size(): number;
  close(): Promise<void>;
}
