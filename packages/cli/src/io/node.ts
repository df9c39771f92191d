import { createReadStream } from "node:fs";
import type { Io, Sink, Size } from "./io.ts";

/** What the launcher sends unasked, so that both ways behave alike. */
const atHand = /^(CAISSON_.*|TERM|NO_COLOR|LANG|COLUMNS|HOME|PATH)$/;
const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"] as const;

/** The terminal, files, variables and signals of this very process. */
export function nodeIo(): Io {
  const gone = new AbortController();
  const lost = () => gone.abort();
  process.stdout.on("error", lost);
  process.stderr.on("error", () => {});
  const env = Object.entries(process.env).filter(([name]) => atHand.test(name));
  return {
    stdout: sink(process.stdout),
    stderr: sink(process.stderr),
    stdin: {
      isTerminal: process.stdin.isTTY === true,
      isEmpty: false,
      read: () => process.stdin,
    },
    cwd: currentDirectory(),
    env: Object.fromEntries(env) as Record<string, string>,
    askEnv: async (names) =>
      Object.fromEntries(
        names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
      ),
    readFile: (path) => createReadStream(path, { highWaterMark: 256 * 1024 }),
    get size() {
      return sizeOf();
    },
    onSignal(listener) {
      const heard = (signal: string) => listener(signal);
      for (const signal of signals) process.on(signal, heard);
      return () => {
        for (const signal of signals) process.off(signal, heard);
      };
    },
    onResize(listener) {
      const changed = () => {
        const size = sizeOf();
        if (size) listener(size);
      };
      process.stdout.on("resize", changed);
      return () => void process.stdout.off("resize", changed);
    },
    setRaw: (raw) => void process.stdin.setRawMode?.(raw),
    gone: gone.signal,
  };
}

function sink(stream: NodeJS.WriteStream): Sink {
  return {
    isTerminal: stream.isTTY === true,
    write(data) {
      if (stream.write(data) || stream.destroyed) return undefined;
      return new Promise((resolve) => {
        const done = () => {
          stream.off("drain", done);
          stream.off("close", done);
          resolve();
        };
        stream.on("drain", done);
        stream.on("close", done);
      });
    },
  };
}

function sizeOf(): Size | undefined {
  const { columns, rows } = process.stdout;
  return columns ? { columns, rows } : undefined;
}

function currentDirectory(): string {
  try {
    return process.cwd();
  } catch {
    return "";
  }
}
