import type { Connection } from "./connection.ts";

/**
 * Pings a guest that has been silent for an interval, and gives it up after `missed` intervals
 * without a sign of life, or in which it has read nothing of what waits for it.
 */
export class Heartbeat {
  readonly #timer: NodeJS.Timeout;

  constructor(
    connection: Connection,
    options: { everyMs: number; missed: number; onDead: (why: string) => void },
  ) {
    let silent = 0;
    let stuck = 0;
    this.#timer = setInterval(() => {
      stuck = connection.writer.congested && !connection.writer.drained ? stuck + 1 : 0;
      connection.writer.drained = false;
      if (connection.heard) {
        connection.heard = false;
        silent = 0;
      } else {
        if (silent >= options.missed) options.onDead("the guest does not answer");
        else connection.call("pong", { case: "ping", value: {} }).catch(() => {});
        silent += 1;
      }
      if (stuck > options.missed) options.onDead("the guest does not read");
    }, options.everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
