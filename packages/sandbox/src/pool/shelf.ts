import { Demand } from "./demand.ts";
import type { Entry, Kind } from "./entry.ts";

interface Waiting {
  entry: Entry;
  /** It has left the shelf: its death is somebody else's matter. */
  left: boolean;
}

/** The sandboxes of one kind that wait, the oldest first, and the one that is being launched. */
export class Shelf {
  readonly kind: Kind;
  readonly demand: Demand;
  /** Some wait even if none was taken for long. */
  standing = false;
  #waiting: Waiting[] = [];
  /** Gets the launch that is under way, should somebody want it before it is on the shelf. */
  #coming: { launch: Promise<Entry>; mounts: string; claimed: boolean } | undefined;

  constructor(kind: Kind, now: number) {
    this.kind = kind;
    this.demand = new Demand(now);
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Waits for a launch; resolves with nothing when a taker has claimed it meanwhile. */
  async coming(launch: Promise<Entry>, mounts: string): Promise<Entry | undefined> {
    const coming = { launch, mounts, claimed: false };
    this.#coming = coming;
    try {
      const entry = await launch;
      return coming.claimed ? undefined : entry;
    } catch (error) {
      // Whoever claimed it is told.
      if (coming.claimed) return undefined;
      throw error;
    } finally {
      this.#coming = undefined;
    }
  }

  /** Takes over the launch that is under way; nothing when there is none or another taker has it. */
  async claimComing(mounts: string): Promise<Entry | undefined> {
    const coming = this.#coming;
    if (!coming || coming.claimed || coming.mounts !== mounts) return undefined;
    coming.claimed = true;
    return coming.launch;
  }

  put(entry: Entry, onDied: () => void): void {
    const waiting: Waiting = { entry, left: false };
    this.#waiting.push(waiting);
    const died = () => {
      if (waiting.left) return;
      this.#leave([waiting]);
      onDied();
    };
    void entry.guest.lost.then(died);
    void entry.launched.ended.then(died);
  }

  take(): Entry | undefined {
    const waiting = this.#waiting[0];
    if (waiting) this.#leave([waiting]);
    return waiting?.entry;
  }

  /** Those launched before a time, or from other mounts than these. */
  takeStale(before: number, mounts: string): Entry[] {
    return this.#leave(
      this.#waiting.filter(({ entry }) => entry.launchedAt < before || entry.mounts !== mounts),
    );
  }

  takeAll(): Entry[] {
    return this.#leave(this.#waiting);
  }

  #leave(leaving: Waiting[]): Entry[] {
    if (leaving.length === 0) return [];
    this.#waiting = this.#waiting.filter((waiting) => !leaving.includes(waiting));
    for (const waiting of leaving) waiting.left = true;
    return leaving.map(({ entry }) => entry);
  }
}
