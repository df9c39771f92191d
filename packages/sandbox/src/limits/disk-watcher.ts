// Stands in for a quota, which few file systems have switched on: measures what a sandbox wrote to its project's layer.
import { statfsSync } from "node:fs";

/** How often the file system is asked how full it is. */
const everyMs = 250;
/** Somebody else may free what a sandbox takes: a busy one is measured so often in any case. */
const measuredEveryMs = 5000;
/** Of the time, measuring may take one part in so many. */
const restFor = 4;

export interface DiskUse {
  bytes: number;
  files: number;
}

export interface WatchedDisk {
  /** The most that it may have. */
  readonly bound: DiskUse;
  /** May something be writing? */
  isBusy(): boolean;
  measure(): Promise<DiskUse>;
  /** It has more than it may, and more than when this was last said. */
  exceeded(used: DiskUse): void;
}

interface Measured {
  used: DiskUse;
  /** What the file system had left at that moment. */
  free: DiskUse;
  at: number;
  tookMs: number;
}

interface State {
  last: Measured;
  told: DiskUse;
  measuring: boolean;
}

const nothing: DiskUse = { bytes: 0, files: 0 };

/**
 * Measuring costs a walk, so it is done when it can matter: a layer cannot have outgrown its bound before the file system has
 * lost as much as was left of it.
 */
export class DiskWatcher {
  readonly #watched = new Map<WatchedDisk, State>();
  readonly #free: () => DiskUse;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;

  /** `free` is what the file system that all of them fill has left. */
  constructor(free: () => DiskUse, now: () => number = () => performance.now()) {
    this.#free = free;
    this.#now = now;
  }

  watch(disk: WatchedDisk): () => void {
    const last = { used: nothing, free: this.#free(), at: this.#now(), tookMs: 0 };
    this.#watched.set(disk, { last, told: nothing, measuring: false });
    this.#timer ??= setInterval(() => this.look(), everyMs).unref();
    return () => {
      this.#watched.delete(disk);
      if (this.#watched.size === 0) this.stop();
    };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  look(): void {
    const [free, now] = [this.#free(), this.#now()];
    for (const [disk, state] of this.#watched) {
      if (!state.measuring && isDue(disk, state.last, free, now)) void this.#measure(disk, state, free);
    }
  }

  async #measure(disk: WatchedDisk, state: State, free: DiskUse): Promise<void> {
    state.measuring = true;
    const at = this.#now();
    try {
      const used = await disk.measure();
      state.last = { used, free, at, tookMs: this.#now() - at };
      const { bound } = disk;
      const isOver = used.bytes > bound.bytes || used.files > bound.files;
      const hasGrown = used.bytes > state.told.bytes || used.files > state.told.files;
      if (!isOver || !hasGrown || !this.#watched.has(disk)) return;
      state.told = used;
      disk.exceeded(used);
    } catch {
      // It is being removed, or whoever measures is gone: the next look tries again.
    } finally {
      state.measuring = false;
    }
  }
}

function isDue({ bound, isBusy }: WatchedDisk, last: Measured, free: DiskUse, now: number): boolean {
  const age = now - last.at;
  if (age < restFor * last.tookMs) return false;
  const mayBeOver =
    last.free.bytes - free.bytes >= bound.bytes - last.used.bytes ||
    last.free.files - free.files >= bound.files - last.used.files;
  return mayBeOver || (age >= measuredEveryMs && isBusy());
}

export function freeOn(directory: string): DiskUse {
  try {
    const { bsize, bfree, ffree } = statfsSync(directory);
    return { bytes: bsize * bfree, files: ffree };
  } catch {
    return nothing;
  }
}
