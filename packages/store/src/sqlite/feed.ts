import type { EventQuery, StoredEvent } from "../store.ts";
import { matches } from "./log.ts";

/** Latest events kept in memory, so that subscribers who keep up never touch the database. */
const recentEvents = 1024;

type Query = Pick<EventQuery, "sandboxId" | "types">;

/** A subscriber that is behind holds at most this many events. */
const pageEvents = 64;

interface Waiter {
  query: Query;
  /** Nothing up to this number is for the waiter. */
  wake(position: number): void;
}

/** Hands new events to subscribers. A subscriber is a number and, while it waits, one promise. */
export class Feed {
  /** Consecutive numbers, the last one being the head. */
  #recent: StoredEvent[] = [];
  #waiting = new Set<Waiter>();
  #head: number;
  #closed = false;
  readonly #read: (query: EventQuery) => StoredEvent[];

  constructor(head: number, read: (query: EventQuery) => StoredEvent[]) {
    this.#head = head;
    this.#read = read;
  }

  get head(): number {
    return this.#head;
  }

  publish(events: StoredEvent[]): void {
    if (events.length === 0) return;
    const before = this.#head;
    this.#head = events.at(-1)!.seq;
    this.#recent.push(...events);
    // Cutting seldom and much keeps the cost per event flat.
    if (this.#recent.length > 2 * recentEvents) this.#recent = this.#recent.slice(-recentEvents);
    for (const waiter of this.#waiting) {
      if (events.some((event) => matches(waiter.query, event.type, event.sandboxId))) {
        waiter.wake(before);
      }
    }
  }

  /** Ends every subscription; what is on disk has been given to those who asked. */
  close(): void {
    this.#closed = true;
    for (const waiter of this.#waiting) waiter.wake(this.#head);
  }

  async *subscribe(query: Omit<EventQuery, "limit">, signal: AbortSignal): AsyncGenerator<StoredEvent> {
    let position = query.from;
    let resolve: ((position: number) => void) | undefined;
    const waiter: Waiter = {
      query,
      wake: (nothingUpTo) => {
        this.#waiting.delete(waiter);
        resolve?.(nothingUpTo);
      },
    };
    const aborted = () => waiter.wake(0);
    signal.addEventListener("abort", aborted, { once: true });
    try {
      while (!signal.aborted && !this.#closed) {
        if (position >= this.#head) {
          this.#waiting.add(waiter);
          const nothingUpTo = await new Promise<number>((settle) => {
            resolve = settle;
          });
          position = Math.max(position, nothingUpTo);
          continue;
        }
        const page = this.#after(position, query);
        for (const event of page.events) {
          if (signal.aborted) return;
          yield event;
        }
        position = page.position;
      }
    } finally {
      this.#waiting.delete(waiter);
      signal.removeEventListener("abort", aborted);
    }
  }

  /** What follows a number, and the number up to which nothing more can be found. */
  #after(position: number, query: Query): { events: StoredEvent[]; position: number } {
    const first = this.#recent[0]?.seq ?? Number.POSITIVE_INFINITY;
    if (position + 1 >= first) {
      const slice = this.#recent.slice(position + 1 - first, position + 1 - first + pageEvents);
      const events = slice.filter((event) => matches(query, event.type, event.sandboxId));
      return { events, position: slice.at(-1)!.seq };
    }
    const head = this.#head;
    const events = this.#read({ ...query, from: position, limit: pageEvents });
    return { events, position: events.length < pageEvents ? head : events.at(-1)!.seq };
  }
}
