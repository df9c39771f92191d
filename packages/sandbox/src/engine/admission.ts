import { availableParallelism, totalmem } from "node:os";
import { CaissonError } from "@caisson/contract";
import type { LimitValues } from "../limits/index.ts";
import type { AdmissionSettings } from "./parts.ts";

/** What a sandbox counts for. A limit that is not set reserves nothing. */
type Needs = Pick<LimitValues, "memoryBytes" | "cpuMillis">;

interface Waiting {
  needs: Needs;
  granted(): void;
}

/** A place on the host, now or later. */
export interface Place {
  /** Undefined when there is a place at once. */
  readonly waiting: Promise<void> | undefined;
  /** Gives the place, or the wait for it, up. May be called again. */
  release(): void;
}

/** Lets sandboxes in up to the host's bounds; the others wait in the order they came. */
export class Admission {
  readonly #settings: AdmissionSettings;
  readonly #memoryBytes: number;
  readonly #cpuMillis: number;
  readonly #queue: Waiting[] = [];
  #used = { sandboxes: 0, memoryBytes: 0, cpuMillis: 0 };

  constructor(settings: AdmissionSettings) {
    this.#settings = settings;
    this.#memoryBytes = (totalmem() * settings.memoryPercent) / 100;
    this.#cpuMillis = availableParallelism() * 10 * settings.cpuPercent;
  }

  enter(needs: Needs): Place {
    if (needs.memoryBytes > this.#memoryBytes || needs.cpuMillis > this.#cpuMillis) {
      throw new CaissonError("QUEUE_FULL", "the sandbox's limits are beyond what this host admits in all");
    }
    if (this.#queue.length === 0 && this.#fits(needs)) {
      this.#take(needs);
      return { waiting: undefined, release: once(() => this.#give(needs)) };
    }
    if (this.#queue.length >= this.#settings.queue) {
      throw new CaissonError(
        "QUEUE_FULL",
        "the host is at its bound, and as many sandboxes as may wait are waiting",
      );
    }
    return this.#wait(needs);
  }

  /** For a sandbox that lives already, whatever the bounds say now. */
  readmit(needs: Needs): Place {
    this.#take(needs);
    return { waiting: undefined, release: once(() => this.#give(needs)) };
  }

  #wait(needs: Needs): Place {
    let admitted = false;
    let entry!: Waiting;
    const waiting = new Promise<void>((resolve) => {
      entry = {
        needs,
        granted: () => {
          admitted = true;
          resolve();
        },
      };
    });
    this.#queue.push(entry);
    const release = once(() => {
      if (admitted) return this.#give(needs);
      this.#queue.splice(this.#queue.indexOf(entry), 1);
      this.#admit();
    });
    return { waiting, release };
  }

  #fits(needs: Needs): boolean {
    return (
      this.#used.sandboxes < this.#settings.sandboxes &&
      this.#used.memoryBytes + needs.memoryBytes <= this.#memoryBytes &&
      this.#used.cpuMillis + needs.cpuMillis <= this.#cpuMillis
    );
  }

  #take(needs: Needs): void {
    this.#used.sandboxes++;
    this.#used.memoryBytes += needs.memoryBytes;
    this.#used.cpuMillis += needs.cpuMillis;
  }

  #give(needs: Needs): void {
    this.#used.sandboxes--;
    this.#used.memoryBytes -= needs.memoryBytes;
    this.#used.cpuMillis -= needs.cpuMillis;
    this.#admit();
  }

  /** Strictly in order: a large one at the front is not overtaken by small ones for ever. */
  #admit(): void {
    for (let next = this.#queue[0]; next && this.#fits(next.needs); next = this.#queue[0]) {
      this.#queue.shift();
      this.#take(next.needs);
      next.granted();
    }
  }
}

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}
