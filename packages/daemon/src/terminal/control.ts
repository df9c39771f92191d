import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { DaemonControl } from "@caisson/cli";

export interface ControlOptions {
  /** The data directory. */
  home: string;
  socket: string;
  version: string;
  build: string;
  /** Addresses on the network; filled while the daemon runs. */
  listening: readonly string[];
}

/** How often a followed log is looked at. */
const lookEveryMs = 200;
const chunkBytes = 64 * 1024;

/** What the command line may do with the daemon it runs in. */
export function daemonControl(options: ControlOptions): Omit<DaemonControl, "restart"> {
  const startedAt = new Date(Date.now() - process.uptime() * 1000);
  return {
    status: () => ({
      pid: process.pid,
      version: options.version,
      build: options.build,
      startedAt,
      dataDirectory: options.home,
      socket: options.socket,
      listening: [...options.listening],
    }),
    // The same way as from outside: what it takes to stop is written once.
    stop: () => void process.kill(process.pid, "SIGTERM"),
    logs: (wanted) => readLog(join(options.home, "daemon.log"), wanted),
  };
}

async function* readLog(
  path: string,
  { lines, follow, signal }: { lines: number; follow: boolean; signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  await using file = await open(path, "r");
  let at = await startOfLastLines(file, lines);
  const buffer = Buffer.allocUnsafe(chunkBytes);
  while (!signal.aborted) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead > 0) {
      at += bytesRead;
      yield Buffer.from(buffer.subarray(0, bytesRead));
    } else if (follow) {
      await pause(lookEveryMs, undefined, { signal }).catch(() => {});
    } else {
      return;
    }
  }
}

/** Looks for line ends from the back, in pieces. */
async function startOfLastLines(file: Awaited<ReturnType<typeof open>>, lines: number): Promise<number> {
  const { size } = await file.stat();
  const buffer = Buffer.allocUnsafe(chunkBytes);
  let left = lines + 1;
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunkBytes);
    const { bytesRead } = await file.read(buffer, 0, end - start, start);
    for (let index = bytesRead - 1; index >= 0; index--) {
      const closesLine = buffer[index] === 10;
      if (closesLine && --left === 0) return start + index + 1;
    }
    end = start;
  }
  return 0;
}
