import { rules } from "@caisson/contract";
import type { OutputSink } from "./guest.ts";

export interface OpenOptions {
  /** Sinks of the processes that an earlier daemon started, by stream. Their output goes on where each stands. */
  sinks?: Iterable<readonly [stream: number, sink: OutputSink]>;
  /** The build that the guest must be of. Default: any build that speaks our version of the link. */
  build?: string;
  /** Resolves when the sandbox's outer process is gone. Nothing is opened again then. */
  ended?: Promise<string>;
  /** Until a guest must have answered a hello, in milliseconds. Default: 10 000. */
  helloTimeoutMs?: number;
  /** Silence before a ping, in milliseconds. Default: `times.heartbeat_ms`. */
  heartbeatMs?: number;
  /** Waits before each attempt to open the link again, in milliseconds; then it is lost. */
  reconnectDelaysMs?: readonly number[];
  /** A connection that held for so long makes the next attempts count from the first again. Default: 1000. */
  stableMs?: number;
  /** Waits after a sink has failed before it is given the same bytes again; the last one repeats. */
  sinkRetryDelaysMs?: readonly number[];
}

export interface LinkSettings {
  build: string | undefined;
  helloTimeoutMs: number;
  heartbeatMs: number;
  heartbeatMissed: number;
  reconnectDelaysMs: readonly number[];
  stableMs: number;
  sinkRetryDelaysMs: readonly number[];
}

export function settingsOf(options: OpenOptions): LinkSettings {
  return {
    build: options.build,
    helloTimeoutMs: options.helloTimeoutMs ?? 10_000,
    heartbeatMs: options.heartbeatMs ?? rules.times.heartbeat_ms,
    heartbeatMissed: rules.times.heartbeat_missed,
    reconnectDelaysMs: options.reconnectDelaysMs ?? [
      0, 5, 10, 20, 50, 100, 200, 500, 1000, 1000, 2000, 2000, 2000, 2000, 2000, 2000,
    ],
    stableMs: options.stableMs ?? 1000,
    sinkRetryDelaysMs: options.sinkRetryDelaysMs ?? [1000, 2000, 5000, 15_000],
  };
}
