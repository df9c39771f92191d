import { createReadStream, statSync, watch } from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { DaemonControl } from "@caisson/cli";

/** How far back the last lines are looked for. */
const tailBytes = 1 << 20;

/** The daemon as its own command line sees it. */
export function daemonControl(about: {
  home: string;
  socket: string;
  version: string;
  build: string;
  listening: string[];
}): Omit<DaemonControl, "restart"> {
  const startedAt = new Date();
  const file = join(about.home, "daemon.log");
  return {
    status: () => ({
      pid: process.pid,
      version: about.version,
      build: about.build,
      startedAt,
      dataDirectory: about.home,
      socket: about.socket,
      listening: [...about.listening],
    }),
    stop: () => process.kill(process.pid, "SIGTERM"),
    async *logs({ lines, follow, signal }) {
      let at = sizeOf(file);
      yield await lastLines(file, lines, at);
      while (follow && !signal.aborted) {
        await changed(file, signal);
        const size = sizeOf(file);
        if (size > at)
          for await (const piece of createReadStream(file, { start: at, end: size - 1 })) yield piece;
        at = size;
      }
    },
  };
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

async function lastLines(file: string, lines: number, size: number): Promise<Uint8Array> {
  if (size === 0) return new Uint8Array();
  const handle = await open(file);
  try {
    const start = Math.max(0, size - tailBytes);
    const buffer = Buffer.alloc(size - start);
    await handle.read(buffer, 0, buffer.length, start);
    let from = buffer.length - 1;
    for (let left = lines; left > 0 && from > 0; left--) from = buffer.lastIndexOf(10, from - 1);
    return buffer.subarray(from <= 0 ? 0 : from + 1);
  } finally {
    await handle.close();
  }
}

/** Resolves when the file grows, or is aborted. */
function changed(file: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      watcher.close();
      signal.removeEventListener("abort", done);
      resolve();
    };
    // The file may not be there: a daemon that no launcher started logs elsewhere.
    const watcher = watch(dirname(file), (_, name) => name === basename(file) && done());
    watcher.once("error", done);
    signal.addEventListener("abort", done, { once: true });
  });
}
