import type { Socket } from "node:net";
import { CaissonError, rules } from "@caisson/contract";
import { decodeMessage } from "@caisson/contract/codec";
import { borrowRoom } from "@caisson/contract/lent";
import { encodeStatus } from "@caisson/contract/status";
import {
  dataFrame,
  decodeRequest,
  encodeErrorResponse,
  encodeHeader,
  FrameDecoder,
  type FrameSink,
  flag,
  messageType,
  type RequestEnvelope,
  responseFrame,
} from "@caisson/contract/ttrpc";
import type { Log } from "../../deps.ts";
import type { Route } from "../routes.ts";
import { TtrpcCall } from "./call.ts";
import { Inbox } from "./inbox.ts";
import { Outbox } from "./outbox.ts";

export interface TtrpcOptions {
  routes: ReadonlyMap<string, Route>;
  /** Who is on the other side. */
  actor: string;
  log: Log;
  /** Calls at once on one connection; more are refused. Default: 1024. */
  maxCalls?: number;
}

/** Messages of one client stream that wait for their handler before the socket is no longer read. */
const inboxMessages = 8;
const empty = new Uint8Array(0);

/** Serves one connection. A stream has a connection of its own, so the socket's buffer is its back-pressure. */
export class TtrpcConnection implements FrameSink {
  readonly #socket: Socket;
  readonly #options: TtrpcOptions;
  readonly #maxCalls: number;
  readonly #calls = new Map<number, TtrpcCall>();
  readonly #outbox: Outbox;
  #fullInboxes = 0;

  /** `first` is what was read already. */
  constructor(socket: Socket, first: Buffer, options: TtrpcOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#maxCalls = options.maxCalls ?? 1024;
    this.#outbox = new Outbox(socket);
    const decoder = new FrameDecoder(this, { makeRoom: borrowRoom });
    socket.on("data", (chunk: Buffer) => decoder.push(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#abandonAll());
    decoder.push(first);
  }

  frame(stream: number, type: number, flags: number, payload: Buffer): void {
    if (type === messageType.request) this.#begin(stream, flags, payload);
    else if (type === messageType.data) this.#data(stream, flags, payload);
    // Only a server answers: what comes now cannot be made sense of.
    else this.#socket.destroy();
  }

  oversize(stream: number, type: number, length: number): void {
    const error = new CaissonError(
      "TOO_LARGE",
      `a message of ${length} bytes exceeds ${rules.sizes.message_bytes}`,
    );
    const call = this.#calls.get(stream);
    if (call === undefined && type === messageType.request) this.#refuse(stream, error);
    else if (call !== undefined) this.#fail(call, error);
  }

  #begin(stream: number, flags: number, payload: Buffer): void {
    let request: RequestEnvelope;
    let call: TtrpcCall;
    try {
      if (stream % 2 !== 1 || this.#calls.has(stream)) {
        throw new CaissonError("INVALID_INPUT", "a call needs an odd stream number that is not in use");
      }
      if (this.#calls.size >= this.#maxCalls) {
        throw new CaissonError("RATE_LIMITED", `at most ${this.#maxCalls} calls at once on a connection`);
      }
      request = decodeRequest(payload);
      const route = this.#options.routes.get(`${request.service}/${request.method}`);
      if (route === undefined) throw new CaissonError("METHOD_UNKNOWN", "there is no such method");
      if (request.timeoutNano < 0) throw new CaissonError("DEADLINE_EXCEEDED", "the deadline has passed");
      call = new TtrpcCall(stream, route, request, this.#options.actor);
    } catch (thrown) {
      this.#refuse(stream, CaissonError.from(thrown));
      return;
    }
    this.#calls.set(stream, call);
    if (request.timeoutNano > 0) call.limit(request.timeoutNano, () => this.#expire(call));
    void this.#serve(call, flags, request.payload);
  }

  async #serve(call: TtrpcCall, flags: number, payload: Buffer | undefined): Promise<void> {
    const { route } = call;
    try {
      const input = route.takesStream
        ? this.#openInbox(call, flags, payload)
        : decodeMessage(route.method.input, payload ?? empty);
      const output = route.handler(input, call);
      if (route.answersStream) await this.#pump(call, output as AsyncIterable<unknown>);
      else this.#answer(call, await output);
    } catch (thrown) {
      this.#fail(call, CaissonError.from(thrown));
    }
  }

  #openInbox(call: TtrpcCall, flags: number, payload: Buffer | undefined): Inbox {
    const inbox = new Inbox(inboxMessages, () => this.#readOn());
    call.inbox = inbox;
    if (payload !== undefined) inbox.push(decodeMessage(call.route.method.input, payload));
    if ((flags & flag.remoteClosed) !== 0) inbox.end();
    return inbox;
  }

  #data(stream: number, flags: number, payload: Buffer): void {
    const call = this.#calls.get(stream);
    // The answer may have been sent while this was on its way.
    if (call === undefined) return;
    const closes = (flags & flag.remoteClosed) !== 0;
    const { inbox } = call;
    if (inbox === undefined || inbox.hasEnded) {
      // A caller that has said everything and closes again has gone away.
      if (closes) this.#cancel(call);
      else this.#fail(call, new CaissonError("INVALID_INPUT", "data on a stream that takes none"));
      return;
    }
    if ((flags & flag.noData) === 0) {
      try {
        call.note(payload);
        if (!inbox.push(decodeMessage(call.route.method.input, payload))) this.#stopReading();
      } catch (thrown) {
        this.#fail(call, CaissonError.from(thrown));
        return;
      }
    }
    if (closes) inbox.end();
  }

  async #pump(call: TtrpcCall, messages: AsyncIterable<unknown>): Promise<void> {
    for await (const message of messages) {
      if (call.answered) return;
      this.#outbox.send(...dataFrame(call.stream, 0, call.route.method.output, message as never));
      if (this.#outbox.isFull) await this.#outbox.room();
      if (call.aborted) return;
    }
    if (!this.#close(call)) return;
    this.#outbox.send(encodeHeader(call.stream, messageType.data, flag.remoteClosed | flag.noData, 0));
  }

  #answer(call: TtrpcCall, message: unknown): void {
    if (call.answered) return;
    const frame = responseFrame(call.stream, call.route.method.output, message as never);
    this.#close(call);
    call.giveBackNoted();
    this.#outbox.send(...frame);
  }

  #fail(call: TtrpcCall, error: CaissonError): void {
    if (!this.#close(call)) return;
    if (error.code === "INTERNAL") {
      this.#options.log("error", "a call failed", {
        method: call.route.method.name,
        request_id: call.requestId,
        error: error.cause ?? error,
      });
    }
    call.abort(new DOMException("the call failed", "AbortError"));
    this.#outbox.send(encodeErrorResponse(call.stream, encodeStatus(error, call.requestId)));
  }

  #refuse(stream: number, error: CaissonError): void {
    this.#outbox.send(encodeErrorResponse(stream, encodeStatus(error)));
  }

  #expire(call: TtrpcCall): void {
    call.abort(new DOMException("the deadline has passed", "TimeoutError"));
    this.#fail(call, new CaissonError("DEADLINE_EXCEEDED", "the deadline has passed"));
  }

  #cancel(call: TtrpcCall): void {
    call.abort(new DOMException("the caller has gone", "AbortError"));
    this.#fail(call, new CaissonError("CANCELLED", "the caller has gone"));
  }

  /** Ends a call once; false when it had ended before. */
  #close(call: TtrpcCall): boolean {
    if (call.answered) return false;
    call.finish();
    // Whatever the handler did not take will never be taken.
    void call.inbox?.return();
    this.#calls.delete(call.stream);
    return true;
  }

  #abandonAll(): void {
    for (const call of this.#calls.values()) {
      call.finish();
      call.abort(new DOMException("the caller has gone", "AbortError"));
    }
    this.#calls.clear();
  }

  #stopReading(): void {
    if (this.#fullInboxes++ === 0) this.#socket.pause();
  }

  #readOn(): void {
    if (--this.#fullInboxes === 0) this.#socket.resume();
  }
}
