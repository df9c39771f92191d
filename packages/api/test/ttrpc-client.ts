// A small client on the shared codec: what the tests need to call every kind of method.
import { connect, type Socket } from "node:net";
import {
  create,
  type DescMethod,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { CaissonError } from "@caisson/contract";
import { decodeMessage } from "@caisson/contract/codec";
import { decodeStatus } from "@caisson/contract/status";
import {
  decodeResponse,
  encodeFrame,
  encodeRequest,
  FrameDecoder,
  flag,
  messageType,
  type RequestInit,
  requestPrefix,
} from "@caisson/contract/ttrpc";

type Event = { data: Buffer } | { response: Buffer } | { closed: true };

/** One connection for one call at a time. */
export class TestClient {
  readonly socket: Socket;
  readonly #events: Event[] = [];
  #wake: (() => void) | undefined;
  #next = 1;

  constructor(path: string) {
    this.socket = connect(path);
    const decoder = new FrameDecoder({
      frame: (_stream, type, flags, payload) => {
        if (type === messageType.response) this.#push({ response: payload });
        else if (flags & flag.noData) this.#push({ closed: true });
        else this.#push({ data: payload });
      },
      oversize: () => this.socket.destroy(),
    });
    this.socket.on("data", (chunk: Buffer) => decoder.push(chunk));
    this.socket.on("error", () => {});
    this.socket.on("close", () => this.#push({ closed: true }));
  }

  async unary<M extends DescMethod>(
    method: M,
    request: MessageInitShape<M["input"]>,
    init?: RequestInit,
  ): Promise<MessageShape<M["output"]>> {
    for await (const answer of this.call(method, [request], init)) return answer;
    throw new CaissonError("UNAVAILABLE", "the connection closed");
  }

  async *call<M extends DescMethod>(
    method: M,
    requests: Iterable<MessageInitShape<M["input"]>>,
    init?: RequestInit,
  ): AsyncGenerator<MessageShape<M["output"]>> {
    const stream = this.#next;
    this.#next += 2;
    const prefix = requestPrefix(method.parent.typeName, method.name);
    const streams = method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
    const encoded = [...requests].map((request) => toBinary(method.input, create(method.input, request)));
    if (streams) {
      this.socket.write(encodeRequest(stream, flag.remoteOpen, prefix, undefined, init));
      for (const message of encoded) this.socket.write(encodeFrame(stream, messageType.data, 0, message));
      const end = flag.remoteClosed | flag.noData;
      this.socket.write(encodeFrame(stream, messageType.data, end, Buffer.alloc(0)));
    } else {
      const flags = method.methodKind === "unary" ? 0 : flag.remoteClosed;
      this.socket.write(encodeRequest(stream, flags, prefix, encoded[0], init));
    }
    for (;;) {
      const event = await this.#take();
      if ("closed" in event) return;
      if ("data" in event) {
        yield decodeMessage(method.output, event.data) as MessageShape<M["output"]>;
        continue;
      }
      const { status, payload } = decodeResponse(event.response);
      if (status !== undefined) throw decodeStatus(status);
      yield decodeMessage(method.output, payload) as MessageShape<M["output"]>;
      return;
    }
  }

  close(): void {
    this.socket.destroy();
  }

  #push(event: Event): void {
    this.#events.push(event);
    this.#wake?.();
  }

  async #take(): Promise<Event> {
    while (this.#events.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#events.shift()!;
  }
}
