import type { DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { CallOptions, Transport } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import { requestFrame, requestPrefix } from "@caisson/contract/ttrpc";
import { decodeAnswer } from "./ttrpc-answer.ts";
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
    const { timeoutMs, headers: metadata } = options;
    const prefix = this.#prefix(method);
    const answer = await this.#pool
      .shared()
      .unary(
        (stream) => requestFrame(stream, 0, prefix, method.input, request, { timeoutMs, metadata }),
        timeoutMs,
      );
    return decodeAnswer(method, answer);
  }

  stream<M extends DescMethod>(
    method: M,
    requests: AsyncIterable<MessageInitShape<M["input"]>>,
    options: CallOptions = {},
  ): AsyncIterable<MessageShape<M["output"]>> {
    const prefix = this.#prefix(method);
    return {
      [Symbol.asyncIterator]: () => new TtrpcStream(this.#pool, { method, prefix, requests, options }),
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

async function* only<T>(request: T): AsyncGenerator<T> {
  yield request;
}
