import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { create, type Message } from "@bufbuild/protobuf";
import { CaissonError, type ServedService } from "@caisson/contract";
import { ErrorInfoSchema, toErrorInfo } from "@caisson/contract/status";
import { ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";

/** The services on HTTP/1.1 by somebody else's implementation of Connect, with connections that a test can cut. */
export class ConnectPeer implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Headers of the latest call. */
  headers: Headers = new Headers();

  constructor(services: ServedService[]) {
    const routes = (router: ConnectRouter) => {
      for (const { service, impl } of services) {
        const handlers = service.methods.map((method) => [
          method.localName,
          (input: never, context: HandlerContext) => {
            this.headers = context.requestHeader;
            const handler = impl[method.localName] as (input: never, call: object) => unknown;
            const output = handler(input, { actor: "key:test", requestId: "r", signal: context.signal });
            const make = (message: unknown) => create(method.output, message as never) as Message;
            const single = method.methodKind === "unary" || method.methodKind === "client_streaming";
            return single
              ? whole(output as Promise<unknown>, make)
              : each(output as AsyncIterable<unknown>, make);
          },
        ]);
        router.service(service, Object.fromEntries(handlers));
      }
    };
    this.#server = createServer(connectNodeAdapter({ routes }));
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function whole(output: Promise<unknown>, make: (message: unknown) => Message): Promise<Message> {
  try {
    return make(await output);
  } catch (thrown) {
    throw asConnectError(thrown);
  }
}

async function* each(
  output: AsyncIterable<unknown>,
  make: (message: unknown) => Message,
): AsyncGenerator<Message> {
  try {
    for await (const message of output) yield make(message);
  } catch (thrown) {
    throw asConnectError(thrown);
  }
}

function asConnectError(thrown: unknown): ConnectError {
  const error = CaissonError.from(thrown);
  const details = [{ desc: ErrorInfoSchema, value: toErrorInfo(error) }];
  return new ConnectError(error.message, error.statusNumber, undefined, details);
}
