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
export type StateChange =
  | { put: string; key: string; value: unknown }
  | { remove: string; key: string };

export interface EventQuery {
  from: number;
  sandboxId?: string;
  types?: string[];
  limit?: number;
}

/** The numbered log and the state that derives from it. Members: SQLite. */
export interface Store {
  /** Appends events and changes state in one transaction; resolves when it is on disk. Calls made in
   * the same tick share one sync. Events of one call have consecutive numbers. */
  commit(events: NewEvent[], changes?: StateChange[]): Promise<StoredEvent[]>;
  /** One value of a kind (`sandbox`, `process`, `session`, `key`, `idempotency`, `trust`, …). */
  get<T>(kind: string, key: string): T | undefined;
  /** All values of a kind whose key begins with `prefix`, by key. */
  scan<T>(kind: string, prefix?: string): Iterable<[key: string, value: T]>;
  read(query: EventQuery): StoredEvent[];
  /** Events after `from` as they come, without gap or duplicate, until aborted. */
  subscribe(query: Omit<EventQuery, "limit">, signal: AbortSignal): AsyncIterable<StoredEvent>;
  /** The number of the latest event. */
  readonly head: number;
  verify(from: number): { intact: boolean; checked: number; brokenAt: number; reason: string; head: Uint8Array };
  /** Bytes on disk. */
  size(): number;
  close(): Promise<void>;
}
