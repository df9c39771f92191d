import type { DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type * as Contract from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import { mayRetry, withRetries } from "@caisson/contract/retry";
import { rules } from "@caisson/contract/rules";
import type { CallOptions, OnceOptions } from "./options.ts";

/** Chooses a method from the contract, which is handed over loaded: nothing here imports it by itself. */
export type Choose<M extends DescMethod> = (contract: typeof Contract) => M;

export interface Attempts {
  /** The idempotency key that the request carries. Default: none. */
  key?: string;
  /** Milliseconds for one attempt; `none` where the server waits for something. Default: the policy's. */
  attemptTimeout?: number | "none";
}

export interface CallerOptions {
  contract: typeof Contract;
  transport: Contract.Transport;
  /** False where nothing lies between caller and server: then neither retries nor time limits. Default: true. */
  retry?: boolean | undefined;
  /** W3C trace context for calls that bring none of their own. */
  traceparent?: (() => string | undefined) | undefined;
}

/** Makes the calls: loads what they need, retries by the policy and by nothing else. */
export class Caller {
  readonly #options: CallerOptions;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  async unary<M extends DescMethod>(
    choose: Choose<M>,
    request: MessageInitShape<M["input"]>,
    options: CallOptions = {},
    attempts: Attempts = {},
  ): Promise<MessageShape<M["output"]>> {
    const { contract, transport } = this.#options;
    const method = choose(contract);
    return this.#retrying(method, options, attempts, (call) => transport.unary(method, request, call));
  }

  /** A server stream whose messages are wanted all together. */
  async collect<M extends DescMethod>(
    choose: Choose<M>,
    request: MessageInitShape<M["input"]>,
    options: CallOptions = {},
    attempts: Attempts = {},
  ): Promise<MessageShape<M["output"]>[]> {
    const { contract, transport } = this.#options;
    const method = choose(contract);
    return this.#retrying(method, options, attempts, async (call) => {
      const messages: MessageShape<M["output"]>[] = [];
      for await (const message of transport.stream(method, only(request), call)) messages.push(message);
      return messages;
    });
  }

  /** A server stream, once: reattaching is up to those who know how to resume. */
  stream<M extends DescMethod>(
    choose: Choose<M>,
    request: MessageInitShape<M["input"]>,
    options: CallOptions = {},
  ): AsyncIterable<MessageShape<M["output"]>> {
    const { contract, transport } = this.#options;
    return transport.stream(choose(contract), only(request), this.#call(options));
  }

  /** A client stream, once: what was sent of its body is not there to be sent again. */
  async upload<M extends DescMethod>(
    choose: Choose<M>,
    requests: AsyncIterable<MessageInitShape<M["input"]>>,
    options: CallOptions = {},
  ): Promise<MessageShape<M["output"]>> {
    const { contract, transport } = this.#options;
    for await (const message of transport.stream(choose(contract), requests, this.#call(options)))
      return message;
    throw new CaissonError("INTERNAL", "the server ended the call without an answer");
  }

  /** Streams in both directions, once. */
  exchange<M extends DescMethod>(
    choose: Choose<M>,
    requests: AsyncIterable<MessageInitShape<M["input"]>>,
    options: CallOptions = {},
  ): AsyncIterable<MessageShape<M["output"]>> {
    const { contract, transport } = this.#options;
    return transport.stream(choose(contract), requests, this.#call(options));
  }

  /** The caller's idempotency key, or a fresh one where calls may be repeated. */
  key(options: OnceOptions | undefined): string {
    return options?.idempotencyKey ?? (this.#options.retry === false ? "" : crypto.randomUUID());
  }

  close(): Promise<void> {
    return this.#options.transport.close();
  }

  #call(options: CallOptions): Contract.CallOptions {
    const call: Contract.CallOptions = {};
    if (options.signal) call.signal = options.signal;
    const traceparent = options.traceparent ?? this.#options.traceparent?.();
    if (traceparent) call.headers = { traceparent };
    return call;
  }

  async #retrying<T>(
    method: DescMethod,
    options: CallOptions,
    attempts: Attempts,
    attempt: (call: Contract.CallOptions) => Promise<T>,
  ): Promise<T> {
    const call = this.#call(options);
    if (this.#options.retry === false) return attempt(call);
    const { attemptTimeout, key = "" } = attempts;
    const { headers } = call;
    return withRetries(
      ({ number, timeoutMs }) => {
        if (Number.isFinite(timeoutMs)) call.timeoutMs = timeoutMs;
        if (number > 1) call.headers = { ...headers, [rules.retry.attempt_header]: String(number) };
        return attempt(call);
      },
      {
        signal: options.signal,
        retry: mayRetry(method.name, key),
        attemptTimeoutMs: attemptTimeout === "none" ? Number.POSITIVE_INFINITY : attemptTimeout,
      },
    );
  }
}

async function* only<T>(request: T): AsyncGenerator<T> {
  yield request;
}
