import type { CallOptions } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import { decodeStatus } from "@caisson/contract/status";
import { decodeResponse, encodeFrame, encodeRequest, flag, messageType } from "@caisson/contract/ttrpc";
import type { Connection, StreamListener } from "./ttrpc-connection.ts";
import type { ConnectionPool } from "./ttrpc-pool.ts";

/** Bytes that may wait for a slow consumer before the socket is read no further. */
const maxWaitingBytes = 1024 * 1024;

export interface StreamCall<T> {
  kind: "unary" | "server_streaming" | "client_streaming" | "bidi_streaming";
  prefix: Buffer;
  requests: AsyncIterable<Uint8Array>;
  decode: (payload: Buffer) => T;
  options: CallOptions;
}

/** One stream on a connection of its own. The kernel's buffer is its back-pressure; leaving it closes. */
export class TtrpcStream<T> implements AsyncIterator<T>, StreamListener {
  readonly #pool: ConnectionPool;
  readonly #call: StreamCall<T>;
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #connection: Connection | undefined;
  #started = false;
  #sentAll = false;
  /** Set once nothing more will come; the error, if that is why. */
  #over: { error?: CaissonError } | undefined;
  #wake: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #abort: (() => void) | undefined;

  constructor(pool: ConnectionPool, call: StreamCall<T>) {
    this.#pool = pool;
    this.#call = call;
  }

  async next(): Promise<IteratorResult<T>> {
    if (!this.#started) await this.#start();
    while (this.#waiting.length === 0 && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const payload = this.#waiting.shift();
    if (payload !== undefined) {
      this.#waitingBytes -= payload.length;
      if (this.#waitingBytes < maxWaitingBytes / 2) this.#connection?.resume();
      return { done: false, value: this.#call.decode(payload) };
    }
    if (this.#over?.error) {
      const { error } = this.#over;
      this.#over = {};
      throw error;
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<T>> {
    this.#started = true;
    this.#finish();
    this.#waiting.length = 0;
    return { done: true, value: undefined };
  }

  data(payload: Buffer): void {
    this.#waiting.push(payload);
    this.#waitingBytes += payload.length;
    this.#nudge();
  }

  response(payload: Buffer): void {
    try {
      const { status, payload: message } = decodeResponse(payload);
      // Only a call with a single answer has it in here.
      if (!status && this.#answersOnce) this.#waiting.push(message);
      this.#finish(status && decodeStatus(status), true);
    } catch (cause) {
      this.#finish(new CaissonError("INTERNAL", "the server's answer could not be read", { cause }));
    }
  }

  cut(error: CaissonError): void {
    this.#finish(error);
  }

  hungry(): boolean {
    return this.#waitingBytes < maxWaitingBytes;
  }

  get #answersOnce(): boolean {
    return this.#call.kind === "unary" || this.#call.kind === "client_streaming";
  }

  async #start(): Promise<void> {
    this.#started = true;
    const { signal, timeoutMs } = this.#call.options;
    if (signal?.aborted) return this.#finish(CaissonError.from(signal.reason));
    if (signal) {
      this.#abort = () => this.#finish(CaissonError.from(signal.reason));
      signal.addEventListener("abort", this.#abort, { once: true });
    }
    if (timeoutMs !== undefined) {
      const late = () => this.#finish(new CaissonError("DEADLINE_EXCEEDED", "the call took too long"));
      this.#timer = setTimeout(late, timeoutMs);
    }
    this.#connection = this.#pool.take();
    const stream = this.#connection.begin(this);
    const sending = this.#send(this.#connection, stream).catch((thrown) =>
      this.#finish(CaissonError.from(thrown)),
    );
    // What streams upwards goes on beside the answers.
    if (this.#call.kind === "server_streaming" || this.#call.kind === "unary") await sending;
  }

  async #send(connection: Connection, stream: number): Promise<void> {
    const { kind, prefix, requests, options } = this.#call;
    const init = { timeoutMs: options.timeoutMs, metadata: options.headers };
    if (kind === "server_streaming" || kind === "unary") {
      for await (const request of requests) {
        connection.write(encodeRequest(stream, flag.remoteClosed, prefix, request, init));
        break;
      }
      this.#sentAll = true;
      return;
    }
    await connection.write(encodeRequest(stream, flag.remoteOpen, prefix, undefined, init));
    for await (const request of requests) {
      if (this.#over) return;
      await connection.write(encodeFrame(stream, messageType.data, 0, request));
    }
    if (this.#over) return;
    connection.write(
      encodeFrame(stream, messageType.data, flag.remoteClosed | flag.noData, new Uint8Array(0)),
    );
    this.#sentAll = true;
  }

  /** With `clean`, the server has said its last word and nothing of this stream is under way. */
  #finish(error?: CaissonError, clean = false): void {
    if (this.#over) return;
    this.#over = error ? { error } : {};
    clearTimeout(this.#timer);
    if (this.#abort) this.#call.options.signal?.removeEventListener("abort", this.#abort);
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection) {
      if (clean && this.#sentAll) this.#pool.giveBack(connection);
      else this.#pool.drop(connection);
    }
    this.#nudge();
  }

  #nudge(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
