import type { DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import { decodeStatus } from "@caisson/contract/status";
import {
  dataFrame,
  decodeResponse,
  encodeHeader,
  encodeRequest,
  flag,
  messageType,
  requestFrame,
} from "@caisson/contract/ttrpc";
import { decodeAnswer } from "./ttrpc-answer.ts";
import type { Connection, StreamListener } from "./ttrpc-connection.ts";
import type { ConnectionPool } from "./ttrpc-pool.ts";

/** Bytes that may wait for a slow consumer before the socket is read no further. */
const maxWaitingBytes = 1024 * 1024;

export interface StreamCall<M extends DescMethod> {
  method: M;
  prefix: Buffer;
  requests: AsyncIterable<MessageInitShape<M["input"]>>;
  options: CallOptions;
}

/** One stream on a connection of its own. The kernel's buffer is its back-pressure; leaving it closes. */
export class TtrpcStream<M extends DescMethod>
  implements AsyncIterator<MessageShape<M["output"]>>, StreamListener
{
  readonly #pool: ConnectionPool;
  readonly #call: StreamCall<M>;
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

  constructor(pool: ConnectionPool, call: StreamCall<M>) {
    this.#pool = pool;
    this.#call = call;
  }

  async next(): Promise<IteratorResult<MessageShape<M["output"]>>> {
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
      return { done: false, value: decodeAnswer(this.#call.method, payload) };
    }
    if (this.#over?.error) {
      const { error } = this.#over;
      this.#over = {};
      throw error;
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<MessageShape<M["output"]>>> {
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

  end(): void {
    this.#finish(undefined, true);
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
    const { methodKind } = this.#call.method;
    return methodKind === "unary" || methodKind === "client_streaming";
  }

  get #asksOnce(): boolean {
    const { methodKind } = this.#call.method;
    return methodKind === "unary" || methodKind === "server_streaming";
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
    if (this.#asksOnce) await sending;
  }

  async #send(connection: Connection, stream: number): Promise<void> {
    const { method, prefix, requests, options } = this.#call;
    const init = { timeoutMs: options.timeoutMs, metadata: options.headers };
    if (this.#asksOnce) {
      for await (const request of requests) {
        const flags = method.methodKind === "unary" ? 0 : flag.remoteClosed;
        connection.write(requestFrame(stream, flags, prefix, method.input, request, init));
        break;
      }
      this.#sentAll = true;
      return;
    }
    connection.write([encodeRequest(stream, flag.remoteOpen, prefix, undefined, init)]);
    for await (const request of requests) {
      if (this.#over) return;
      if (!connection.write(dataFrame(stream, 0, method.input, request))) await connection.drained();
    }
    if (this.#over) return;
    connection.write([encodeHeader(stream, messageType.data, flag.remoteClosed | flag.noData, 0)]);
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
