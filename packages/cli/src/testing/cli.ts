import type { Client } from "@caisson/client";
import { FakeDaemon, inProcessClient } from "@caisson/client/testing";
import { main } from "../invoke.ts";
import type { Host } from "../io/host.ts";
import { MemoryIo, type MemoryIoOptions } from "./memory-io.ts";

/** What a fake daemon was told to do. */
export interface Told {
  stopped: number;
  restarted: number;
}

export interface Ran {
  code: number;
  io: MemoryIo;
}

/** A command line on a daemon in memory. */
export class Cli {
  readonly daemon = new FakeDaemon();
  readonly told: Told = { stopped: 0, restarted: 0 };
  client: Client | undefined;
  sharesFiles = true;
  startedAt = new Date(0);

  /** Runs one command line to its end. */
  async run(args: readonly string[], options?: MemoryIoOptions): Promise<Ran> {
    const { io, done } = await this.start(args, options);
    return { io, code: await done };
  }

  /** Starts one command line; the test goes on beside it. */
  async start(
    args: readonly string[],
    options?: MemoryIoOptions,
  ): Promise<{ io: MemoryIo; done: Promise<number> }> {
    this.client ??= (await inProcessClient(this.daemon)).client;
    const io = new MemoryIo(options);
    return { io, done: main(args, io, this.client, this.#host()) };
  }

  /** The requests of one method, in order. */
  requests<T = Record<string, unknown>>(method: string): T[] {
    return this.daemon.calls.filter((call) => call.method === method).map((call) => call.request as T);
  }

  #host(): Host {
    const told = this.told;
    return {
      sharesFiles: this.sharesFiles,
      openapi: async () => `{"openapi":"3.1.0"}`,
      daemon: {
        status: () => ({
          pid: 42,
          version: "0.0.0",
          build: "b",
          startedAt: this.startedAt,
          dataDirectory: "/data",
          socket: "/data/run/daemon.sock",
          listening: ["http://127.0.0.1:7676"],
        }),
        stop: () => void told.stopped++,
        restart: async () => void told.restarted++,
        async *logs({ lines }) {
          yield Buffer.from(`${lines} lines\n`);
        },
      },
    };
  }
}
