import {
  create,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { CallOptions, Transport } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import { Envelopes, envelope, streamingBody } from "./connect-envelope.ts";
import { errorFromEnd, errorFromResponse } from "./connect-error.ts";
import { Request } from "./http-request.ts";

export interface ConnectOptions {
  /** Where the daemon listens, such as `http://127.0.0.1:7676`. */
  url: string;
  /** A key made by `caisson keys create`, or a JWT. */
  key?: string | undefined;
}

/** The Connect protocol on `fetch`, so that it works wherever that does. */
export class ConnectTransport implements Transport {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  constructor({ url, key }: ConnectOptions) {
    this.#base = url.replace(/\/+$/, "");
    this.#headers = key ? { authorization: `Bearer ${key}` } : {};
  }

  async unary<M extends DescMethod>(
    method: M,
    request: MessageInitShape<M["input"]>,
    options: CallOptions = {},
  ): Promise<MessageShape<M["output"]>> {
    await using call = new Request(options);
    const response = await call.fetch(this.#url(method), {
      method: "POST",
      headers: this.#with(options, { "content-type": "application/proto" }),
      body: encode(method, request) as Uint8Array<ArrayBuffer>,
    });
    if (!response.ok) throw await errorFromResponse(response);
    return decode(method, new Uint8Array(await call.guard(response.arrayBuffer())));
  }

  stream<M extends DescMethod>(
    method: M,
    requests: AsyncIterable<MessageInitShape<M["input"]>>,
    options: CallOptions = {},
  ): AsyncIterable<MessageShape<M["output"]>> {
    if (method.methodKind === "bidi_streaming") {
      throw new CaissonError(
        "METHOD_UNKNOWN",
        `${method.name} streams in both directions: use the Unix socket`,
      );
    }
    return this.#stream(method, requests, options);
  }

  async close(): Promise<void> {}

  async *#stream<M extends DescMethod>(
    method: M,
    requests: AsyncIterable<MessageInitShape<M["input"]>>,
    options: CallOptions,
  ): AsyncGenerator<MessageShape<M["output"]>> {
    await using call = new Request(options);
    const response = await call.fetch(this.#url(method), {
      method: "POST",
      headers: this.#with(options, { "content-type": "application/connect+proto" }),
      ...(method.methodKind === "server_streaming"
        ? { body: envelope(encode(method, await first(requests))) }
        : await streamingBody(encodeAll(method, requests))),
    });
    if (!response.ok || !response.body) throw await errorFromResponse(response);
    const envelopes = new Envelopes();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await call.guard(reader.read());
      if (done) throw new CaissonError("UNAVAILABLE", "the connection to the daemon was cut");
      for (const { end, payload } of envelopes.push(value)) {
        if (!end) {
          yield decode(method, payload);
          continue;
        }
        const error = errorFromEnd(payload);
        if (error) throw error;
        return;
      }
    }
  }

  #url(method: DescMethod): string {
    return `${this.#base}/${method.parent.typeName}/${method.name}`;
  }

  #with({ headers, timeoutMs }: CallOptions, own: Record<string, string>): Record<string, string> {
    const all: Record<string, string> = {
      ...this.#headers,
      ...headers,
      ...own,
      "connect-protocol-version": "1",
    };
    if (timeoutMs !== undefined) all["connect-timeout-ms"] = String(Math.max(1, Math.ceil(timeoutMs)));
    return all;
  }
}

function encode<M extends DescMethod>(method: M, request: MessageInitShape<M["input"]>): Uint8Array {
  return toBinary(method.input, create(method.input, request) as never);
}

async function* encodeAll<M extends DescMethod>(
  method: M,
  requests: AsyncIterable<MessageInitShape<M["input"]>>,
) {
  for await (const request of requests) yield encode(method, request);
}

function decode<M extends DescMethod>(method: M, payload: Uint8Array): MessageShape<M["output"]> {
  try {
    return fromBinary(method.output, payload) as MessageShape<M["output"]>;
  } catch (cause) {
    throw new CaissonError("INTERNAL", "the server's answer could not be read", { cause });
  }
}

async function first<T>(requests: AsyncIterable<T>): Promise<T> {
  for await (const request of requests) return request;
  throw new CaissonError("INVALID_INPUT", "the call carries no message");
}
