import { rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { CaissonError, type ServedService } from "@caisson/contract";
import { encodeStatus } from "@caisson/contract/status";
import {
  decodeRequest,
  encodeErrorResponse,
  encodeFrame,
  encodeHeader,
  encodeResponse,
  FrameDecoder,
  flag,
  messageType,
} from "@caisson/contract/ttrpc";

/** A ttRPC server as small as a test needs, with connections that a test can cut. */
export class TtrpcPeer {
  readonly path: string;
  readonly connections = new Set<Socket>();
  connected = 0;
  /** Bytes after which each connection is cut, by connection; undefined: never. */
  cutAfter: (() => number | undefined) | undefined;
  readonly #server: Server;
  readonly #services: ServedService[];

  constructor(path: string, services: ServedService[]) {
    this.path = path;
    this.#services = services;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async listen(): Promise<this> {
    rmSync(this.path, { force: true });
    await new Promise<void>((resolve) => this.#server.listen(this.path, resolve));
    return this;
  }

  cutAll(): void {
    for (const socket of this.connections) socket.destroy();
  }

  async close(): Promise<void> {
    this.cutAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket): void {
    this.connected++;
    this.connections.add(socket);
    let left = this.cutAfter?.() ?? Infinity;
    const gone = new AbortController();
    const inputs = new Map<number, { push: (bytes: Uint8Array) => void; end: () => void }>();
    const send = (frame: Buffer) => {
      if (left < 0) return;
      if (frame.length > left) {
        socket.write(frame.subarray(0, left));
        socket.destroySoon();
      } else {
        socket.write(frame);
      }
      left -= frame.length;
    };
    const decoder = new FrameDecoder({
      frame: (stream, type, flags, payload) => {
        if (type === messageType.data) {
          const input = inputs.get(stream);
          if ((flags & flag.noData) === 0) input?.push(Buffer.from(payload));
          if ((flags & flag.remoteClosed) !== 0) input?.end();
          return;
        }
        const { service, method, payload: first } = decodeRequest(payload);
        const queue = new Queue();
        if (first) queue.push(Buffer.from(first));
        if ((flags & flag.remoteOpen) === 0) queue.end();
        inputs.set(stream, queue);
        this.#answer({ service, method, stream }, queue, send, gone.signal).catch((thrown) =>
          send(encodeErrorResponse(stream, encodeStatus(CaissonError.from(thrown)))),
        );
      },
      oversize: () => socket.destroy(),
    });
    socket.on("data", (chunk) => decoder.push(chunk));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.connections.delete(socket);
      gone.abort();
    });
  }

  async #answer(
    { service, method, stream }: { service: string; method: string; stream: number },
    inputs: AsyncIterable<Uint8Array>,
    send: (frame: Buffer) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const served = this.#services.find((candidate) => candidate.service.typeName === service);
    const desc = served?.service.methods.find((candidate) => candidate.name === method);
    if (!served || !desc) throw new CaissonError("METHOD_UNKNOWN", `there is no ${method}`);
    const handler = served.impl[desc.localName] as (input: unknown, call: unknown) => unknown;
    const call = { actor: "uid:0", requestId: "r", signal };
    const requests = (async function* () {
      for await (const bytes of inputs) yield fromBinary(desc.input, bytes);
    })();
    const takesStream = desc.methodKind === "client_streaming" || desc.methodKind === "bidi_streaming";
    const output = handler(takesStream ? requests : (await requests.next()).value, call);
    if (desc.methodKind === "unary" || desc.methodKind === "client_streaming") {
      return send(
        encodeResponse(stream, toBinary(desc.output, create(desc.output, (await output) as never))),
      );
    }
    for await (const message of output as AsyncIterable<never>) {
      send(encodeFrame(stream, messageType.data, 0, toBinary(desc.output, create(desc.output, message))));
    }
    send(encodeHeader(stream, messageType.data, flag.remoteClosed | flag.noData, 0));
  }
}

class Queue implements AsyncIterable<Uint8Array> {
  readonly #items: Uint8Array[] = [];
  #ended = false;
  #wake: () => void = () => {};

  push(bytes: Uint8Array): void {
    this.#items.push(bytes);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const item = this.#items.shift();
      if (item) yield item;
      else if (this.#ended) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}
