import { CaissonError } from "@caisson/contract";
import type { ListeningPort } from "@caisson/contract/link";

const firstPauseMs = 10;
const longestPauseMs = 200;

/** Resolves with the port once somebody listens on it. */
export async function waitForPort(
  list: () => Promise<ListeningPort[]>,
  port: number,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ListeningPort> {
  const until = performance.now() + timeoutMs;
  for (let pause = firstPauseMs; ; pause = Math.min(pause * 1.5, longestPauseMs)) {
    signal.throwIfAborted();
    const found = (await list()).find((listening) => listening.port === port);
    if (found) return found;
    const left = until - performance.now();
    if (left <= 0) {
      throw new CaissonError("DEADLINE_EXCEEDED", `nothing listens on port ${port} after ${timeoutMs} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(pause, left)));
  }
}
