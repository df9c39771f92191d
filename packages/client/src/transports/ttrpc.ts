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
import { requestPrefix } from "@caisson/contract/ttrpc";
import { ConnectionPool } from "./ttrpc-pool.ts";
import { TtrpcStream } from "./ttrpc-stream.ts";

export interface TtrpcOptions {
  /** Path of the daemon's Unix socket. */
  socket: string;
}

/** ttRPC over a Unix socket: unary calls share one connection, every stream has one of its own. */
export class TtrpcTransport implements Transport {
  readonly #pool: ConnectionPool;
  readonly #prefixes = new Map<DescMethod, Buffer>();

  constructor({ socket }: TtrpcOptions) {
    this.#pool = new ConnectionPool(socket);
  }

  async unary<M extends DescMethod>(
    method: M,
    request: MessageInitShape<M["input"]>,
    options: CallOptions = {},
  ): Promise<MessageShape<M["output"]>> {
    // ttRPC cannot take a call back; closing is the only way to say so. A call that can be cancelled
    // therefore does not share its connection.
    if (options.signal) {
      for await (const message of this.stream(method, only(request), options)) return message;
      throw new CaissonError("INTERNAL", "the server ended the call without an answer");
    }
    const payload = toBinary(method.input, create(method.input, request) as never);
    const answer = await this.#pool.shared().unary(this.#prefix(method), payload, options);
    return decode(method, answer);
  }

  stream<M extends DescMethod>(
    method: M,
    requests: AsyncIterable<MessageInitShape<M["input"]>>,
    options: CallOptions = {},
  ): AsyncIterable<MessageShape<M["output"]>> {
    return {
      [Symbol.asyncIterator]: () =>
        new TtrpcStream(this.#pool, {
          kind: method.methodKind,
          prefix: this.#prefix(method),
          requests: encoded(method, requests),
          decode: (payload) => decode(method, payload),
          options,
        }),
    };
  }

  async close(): Promise<void> {
    this.#pool.close();
  }

  #prefix(method: DescMethod): Buffer {
    let prefix = this.#prefixes.get(method);
    if (!prefix) {
      prefix = requestPrefix(method.parent.typeName, method.name);
      this.#prefixes.set(method, prefix);
    }
    return prefix;
  }
}

function decode<M extends DescMethod>(method: M, payload: Uint8Array): MessageShape<M["output"]> {
  try {
    return fromBinary(method.output, payload) as MessageShape<M["output"]>;
  } catch (cause) {
    throw new CaissonError("INTERNAL", "the server's answer could not be read", { cause });
  }
}

async function* encoded<M extends DescMethod>(
  method: M,
  requests: AsyncIterable<MessageInitShape<M["input"]>>,
) {
  for await (const request of requests) yield toBinary(method.input, create(method.input, request) as never);
}

async function* only<T>(request: T): AsyncGenerator<T> {
  yield request;
}
