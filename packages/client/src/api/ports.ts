import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { type ForwardInfo, forwardFrom, type Port, portFrom } from "../values/port.ts";

export interface WaitForPortOptions extends CallOptions {
  /** Milliseconds, at most ten minutes. Default: 30,000. */
  timeout?: number | undefined;
}

export interface ForwardOptions extends CallOptions {
  /** On the daemon's machine. Default: a free one. */
  hostPort?: number | undefined;
  /** HTTP and WebSocket for a browser, behind a token. Default: bytes as they are. */
  preview?: boolean | undefined;
  /** It lives until it is closed or the sandbox has ended, whatever becomes of this client. Default: false. */
  detach?: boolean | undefined;
}

/** It is closed already. */
const over: readonly string[] = [
  "FORWARD_NOT_FOUND",
  "SANDBOX_ENDED",
  "SANDBOX_NOT_FOUND",
  "SESSION_NOT_FOUND",
];

/** The ports that programs in a sandbox listen on. */
export class Ports {
  readonly #caller: Caller;
  readonly #sandboxId: string;

  constructor(caller: Caller, sandboxId: string) {
    this.#caller = caller;
    this.#sandboxId = sandboxId;
  }

  async list(options?: CallOptions): Promise<Port[]> {
    const request = { sandboxId: this.#sandboxId };
    const { ports } = await this.#caller.unary((c) => c.PortService.method.listPorts, request, options);
    return ports.map(portFrom);
  }

  /** Waits until somebody listens on a port. Rejects with DEADLINE_EXCEEDED when nobody does in time. */
  async wait(port: number, { timeout = 30_000, ...options }: WaitForPortOptions = {}): Promise<Port> {
    const request = { sandboxId: this.#sandboxId, port, timeoutMs: timeout };
    const answer = await this.#caller.unary((c) => c.PortService.method.waitForPort, request, options, {
      attemptTimeout: "none",
    });
    if (!answer.port) throw new CaissonError("INTERNAL", "the server answered without the port");
    return portFrom(answer.port);
  }

  /** Opens a port of the daemon's machine that leads to one inside. `await using` closes it with its scope. */
  async forward(port: number, options: ForwardOptions = {}): Promise<Forward> {
    const { hostPort = 0, preview = false, detach = false, signal, ...rest } = options;
    const request = {
      sandboxId: this.#sandboxId,
      port,
      hostPort,
      kind: preview ? (2 as const) : (1 as const),
      detach,
    };
    const left = new AbortController();
    const leaving = signal ? AbortSignal.any([signal, left.signal]) : left.signal;
    const messages = this.#caller.stream((c) => c.PortService.method.forwardPort, request, {
      ...rest,
      signal: leaving,
    });
    const iterator = messages[Symbol.asyncIterator]();
    const { value: first } = await iterator.next();
    if (!first?.forward) throw new CaissonError("INTERNAL", "the server answered without the forward");
    const info = forwardFrom(first.forward);
    if (detach) return new Forward(info, new Promise(() => {}), () => this.close(info.id));
    const closed = follow(iterator);
    return new Forward(info, closed, async () => {
      try {
        // Leaving the stream would do, but only a moment later.
        await this.close(info.id);
      } catch (thrown) {
        if (!over.includes(CaissonError.from(thrown).code)) throw thrown;
      } finally {
        left.abort();
        await closed;
      }
    });
  }

  /** Those that are open, without their tokens. */
  async forwards(options?: CallOptions): Promise<ForwardInfo[]> {
    const request = { sandboxId: this.#sandboxId };
    const { forwards } = await this.#caller.unary((c) => c.PortService.method.listForwards, request, options);
    return forwards.map(forwardFrom);
  }

  async close(forwardId: string, options?: CallOptions): Promise<void> {
    const request = { sandboxId: this.#sandboxId, forwardId };
    await this.#caller.unary((c) => c.PortService.method.closeForward, request, options);
  }

  /**
   * One connection to a port inside: sends what `input` gives, gives what the program says. Needs a transport with
   * streams in both directions: the daemon's socket, or HTTP/2.
   */
  async *connect(
    port: number,
    input: AsyncIterable<Uint8Array>,
    options?: CallOptions,
  ): AsyncGenerator<Uint8Array> {
    const first = { sandboxId: this.#sandboxId, port };
    async function* requests() {
      yield first;
      for await (const data of input) yield { data };
    }
    const answers = this.#caller.exchange((c) => c.PortService.method.connectPort, requests(), options);
    for await (const { data } of answers) yield data;
  }
}

/** An open forward. */
export class Forward implements AsyncDisposable {
  readonly info: ForwardInfo;
  /** Resolves when it is closed, by whomever; of a detached one never. */
  readonly closed: Promise<void>;
  readonly #close: () => Promise<void>;

  constructor(info: ForwardInfo, closed: Promise<void>, close: () => Promise<void>) {
    this.info = info;
    this.closed = closed;
    this.#close = close;
  }

  get hostPort(): number {
    return this.info.hostPort;
  }

  /** Of a preview: what to open in a browser. */
  get url(): string | undefined {
    return this.info.url;
  }

  close(): Promise<void> {
    return this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#close();
  }
}

/** Reads until the stream is over; how it ends does not matter, it is closed then. */
async function follow(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    while (!(await iterator.next()).done);
  } catch {
    // The daemon is gone, or this side has left.
  }
}
