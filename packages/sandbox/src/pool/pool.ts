import { CaissonError } from "@caisson/contract";
import type { Launched } from "../driver/driver.ts";
import type { Guest } from "../link/guest.ts";
import { openGuest } from "../link/open.ts";
import {
  discardEntry,
  type Entry,
  type Kind,
  type LaunchHooks,
  launchEntry,
  launchSealed,
  sameKind,
} from "./entry.ts";
import { Gate } from "./gate.ts";
import { hostMounts } from "./host-mounts.ts";
import { newSandboxId } from "./sandbox-id.ts";
import { Shelf } from "./shelf.ts";

export interface PoolOptions extends Omit<LaunchHooks, "openGuest"> {
  /** Sandboxes of each kind in use that wait even when little is taken. Default: 2. */
  min?: number;
  /** Sandboxes that wait, of all kinds together. Default: 8. 0: none, every launch is cold. */
  max?: number;
  /** After so long a sandbox is replaced unused, in milliseconds. Default: ten minutes. */
  maxAgeMs?: number;
  /** So long nobody must have waited for anything before the pool launches, in milliseconds. Default: 15. */
  quietMs?: number;
  /** The pool launches after so long in any case, in milliseconds. Default: 500. */
  refillAtMostMs?: number;
  openGuest?: LaunchHooks["openGuest"];
  /** What a waiting sandbox was made from; when it changes, it is replaced. Default: the host's mounts. */
  mounts?: () => string;
  /** Told of launches in the background that failed. */
  onRefillFailed?: (error: unknown) => void;
}

/** A sandbox of the taker's own: it was never used and is never taken again. */
export interface Taken {
  /** Also the name of its directory. */
  readonly id: string;
  readonly dir: string;
  readonly launched: Launched;
  readonly guest: Guest;
  /** It had been waiting. */
  readonly warm: boolean;
}

const tendEveryMs = 5000;
const retryDelaysMs = [500, 2000, 10_000, 30_000];

/** Keeps a few unsealed sandboxes of each kind that is in use, sized by recent use. */
export class Pool {
  readonly #hooks: LaunchHooks;
  readonly #bounds: { min: number; max: number };
  readonly #options: { maxAgeMs: number; quietMs: number; refillAtMostMs: number };
  readonly #mounts: () => string;
  readonly #onRefillFailed: (error: unknown) => void;
  readonly #shelves: Shelf[] = [];
  readonly #gate = new Gate();
  readonly #ending = new Set<Promise<void>>();
  #refilling: Promise<void> | undefined;
  #failures = 0;
  #tendTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#hooks = { openGuest, ...options };
    const max = options.max ?? 8;
    this.#bounds = { min: Math.min(options.min ?? 2, max), max };
    this.#options = {
      maxAgeMs: options.maxAgeMs ?? 600_000,
      quietMs: options.quietMs ?? 15,
      refillAtMostMs: options.refillAtMostMs ?? 500,
    };
    this.#mounts = options.mounts ?? hostMounts;
    this.#onRefillFailed = options.onRefillFailed ?? (() => {});
    if (max > 0) this.#tendTimer = setInterval(() => this.#tend(), tendEveryMs).unref();
  }

  /** How many wait. */
  get waiting(): number {
    return this.#shelves.reduce((sum, shelf) => sum + shelf.size, 0);
  }

  /** Lets sandboxes of a kind wait before the first is taken, and for as long as the pool lives. */
  prewarm(kind: Kind): void {
    this.#shelf(kind).standing = true;
    this.#refill();
  }

  /** Somebody waits for work of ours; call the result when it is done. The pool keeps still meanwhile. */
  working(): () => void {
    return this.#gate.enter();
  }

  /** A sandbox of this kind: one that waited, one whose launch is under way, or a new one. */
  async take(kind: Kind): Promise<Taken> {
    if (this.#closed) throw new CaissonError("UNAVAILABLE", "the daemon is stopping");
    const done = this.#gate.enter();
    try {
      // None waits with an image in it: the image may be removed meanwhile.
      if (kind.root) return taken(await this.#launch(kind, this.#mounts()), false);
      const shelf = this.#shelf(kind);
      shelf.demand.took(performance.now());
      const mounts = this.#mounts();
      this.#discardAll(shelf.takeStale(performance.now() - this.#options.maxAgeMs, mounts));
      const waiting = shelf.take();
      if (waiting) return taken(waiting, true);
      const coming = await shelf.claimComing(mounts);
      return taken(coming ?? (await this.#launch(kind, mounts)), false);
    } finally {
      done();
      this.#refill();
    }
  }

  /** One that waits, taken once nobody waits for anything; undefined when there is none or the work never pauses. */
  async spare(kind: Kind): Promise<Taken | undefined> {
    const isQuiet = await this.#gate.quiet(this.#options.quietMs, this.#options.refillAtMostMs);
    if (!isQuiet || this.#closed) return undefined;
    const shelf = this.#shelf(kind);
    this.#discardAll(shelf.takeStale(performance.now() - this.#options.maxAgeMs, this.#mounts()));
    if (shelf.size === 0) await this.#refilling;
    const waiting = this.#closed ? undefined : shelf.take();
    this.#refill();
    return waiting && taken(waiting, true);
  }

  /** Does one of this kind wait? */
  hasWaiting(kind: Kind): boolean {
    return this.#shelf(kind).size > 0;
  }

  /** One that never waited: launched now, or woken from a machine that was parked. */
  async fresh(kind: Kind): Promise<Taken> {
    if (this.#closed) throw new CaissonError("UNAVAILABLE", "the daemon is stopping");
    const done = this.#gate.enter();
    try {
      return taken(await this.#launch(kind, this.#mounts()), false);
    } finally {
      done();
    }
  }

  /** Resolves once nobody waits for anything, or work never pauses. */
  async quiet(): Promise<void> {
    await this.#gate.quiet(this.#options.quietMs, this.#options.refillAtMostMs);
  }

  /** Ends a sandbox that was taken and is not used. */
  discard({ id, launched, guest }: Taken): void {
    this.#discard({ sandboxId: id, launched, guest });
  }

  /** Goes on with a saved machine; there is none in store, and its link is not open. */
  async launch(kind: Kind): Promise<{ id: string; dir: string; launched: Launched }> {
    if (this.#closed) throw new CaissonError("UNAVAILABLE", "the daemon is stopping");
    return launchSealed(newSandboxId(), kind, this.#hooks);
  }

  /** Ends every sandbox that waits. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#tendTimer);
    clearTimeout(this.#retryTimer);
    for (const shelf of this.#shelves) this.#discardAll(shelf.takeAll());
    await this.#refilling;
    await Promise.all(this.#ending);
  }

  #shelf(kind: Kind): Shelf {
    const known = this.#shelves.find((shelf) => sameKind(shelf.kind, kind));
    if (known) return known;
    const shelf = new Shelf(kind, performance.now());
    this.#shelves.push(shelf);
    return shelf;
  }

  #launch(kind: Kind, mounts: string): Promise<Entry> {
    return launchEntry(newSandboxId(), kind, this.#hooks, { launchedAt: performance.now(), mounts });
  }

  /** Launches what is missing, one after the other, whenever nobody waits for anything. */
  #refill(): void {
    if (this.#refilling || this.#closed || this.#bounds.max === 0 || this.#retryTimer) return;
    this.#refilling = this.#refillAll().finally(() => {
      this.#refilling = undefined;
    });
  }

  async #refillAll(): Promise<void> {
    while (this.#neediest()) {
      await this.#gate.quiet(this.#options.quietMs, this.#options.refillAtMostMs);
      const shelf = this.#neediest();
      if (!shelf || this.#closed) return;
      if (this.waiting >= this.#bounds.max) this.#discardAll([this.#donorFor(shelf)!.take()!]);
      try {
        await this.#stock(shelf);
        this.#failures = 0;
      } catch (error) {
        this.#onRefillFailed(error);
        this.#retryLater();
        return;
      }
    }
  }

  async #stock(shelf: Shelf): Promise<void> {
    const mounts = this.#mounts();
    const entry = await shelf.coming(this.#launch(shelf.kind, mounts), mounts);
    if (!entry) return;
    if (this.#closed) this.#discard(entry);
    else {
      shelf.put(entry, () => this.#onDied(entry));
      // It can be taken meanwhile, and is only slower then.
      await entry.launched.rehearse?.().catch(() => {});
    }
  }

  #onDied(entry: Entry): void {
    this.#discard(entry);
    // A sandbox that dies while it waits may do so again: not at once.
    this.#retryLater();
  }

  #retryLater(): void {
    if (this.#retryTimer || this.#closed) return;
    const delay = retryDelaysMs[Math.min(this.#failures, retryDelaysMs.length - 1)]!;
    this.#failures += 1;
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = undefined;
      this.#refill();
    }, delay).unref();
  }

  /** The kind that misses most, if there is room for one more or room can be made. */
  #neediest(): Shelf | undefined {
    const now = performance.now();
    if (this.#closed) return undefined;
    const missing = (shelf: Shelf) => this.#target(shelf, now) - shelf.size;
    const neediest = this.#shelves.toSorted((a, b) => missing(b) - missing(a))[0];
    if (!neediest || missing(neediest) <= 0) return undefined;
    return this.waiting < this.#bounds.max || this.#donorFor(neediest) ? neediest : undefined;
  }

  /** A kind of which none waits gets the place of one that was asked for longer ago and has more than one. */
  #donorFor(needy: Shelf): Shelf | undefined {
    if (needy.size > 0) return undefined;
    return this.#shelves
      .filter((shelf) => shelf.size > 1 && shelf.demand.lastTake < needy.demand.lastTake)
      .sort((a, b) => a.demand.lastTake - b.demand.lastTake)[0];
  }

  #target(shelf: Shelf, now: number): number {
    const inUse = shelf.standing || now - shelf.demand.lastTake < this.#options.maxAgeMs;
    return inUse ? shelf.demand.target(now, this.#bounds) : 0;
  }

  /** Replaces what is too old and lets go of what is more than wanted. */
  #tend(): void {
    const now = performance.now();
    const mounts = this.#mounts();
    for (const shelf of this.#shelves) {
      this.#discardAll(shelf.takeStale(now - this.#options.maxAgeMs, mounts));
      // One at a time, so that a short pause in use does not empty the pool.
      if (shelf.size > this.#target(shelf, now)) this.#discardAll([shelf.take()!]);
    }
    this.#refill();
  }

  #discardAll(entries: Entry[]): void {
    for (const entry of entries) this.#discard(entry);
  }

  #discard(entry: Parameters<typeof discardEntry>[0]): void {
    const ending = discardEntry(entry, this.#hooks).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

function taken({ sandboxId, dir, launched, guest }: Entry, warm: boolean): Taken {
  return { id: sandboxId, dir, launched, guest, warm };
}
