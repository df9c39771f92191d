import type { Duplex } from "node:stream";
import { fromBinary } from "@bufbuild/protobuf";
import { CaissonError } from "@caisson/contract";
import { type Connect, type Exited, FailureSchema, type GuestControl } from "@caisson/contract/link";
import { errorOfFailure, LinkCut } from "./failure.ts";
import { decodeAck, firstGuestStream, frameType } from "./frame/frame.ts";
import { type FrameHandler, FrameParser } from "./frame/parser.ts";
import { receive } from "./frame/shared-read.ts";
import { FrameWriter } from "./frame/writer.ts";
import { decodeControl, encodeControl, type GuestMessage, type HostMessage } from "./messages.ts";
import type { StreamReceiver } from "./stream/receiver.ts";
import { LinkViolation } from "./violation.ts";

/** Who holds a connection, and what it is told. */
export interface ConnectionOwner {
  exited(exited: Exited): void;
  /** A program inside has opened a connection, on a stream that was not used before on this connection. */
  connected(connect: Connect): void;
  /** The connection is over, once: cut (LinkCut), or ended for cause. */
  closed(error: CaissonError): void;
}

export type Reply<C extends GuestMessage["case"]> =
  Extract<GuestMessage, { case: C }> extends { value: infer V } ? V : never;

interface PendingCall {
  expects: GuestMessage["case"];
  resolve(value: unknown): void;
  reject(error: CaissonError): void;
}

const empty = new Uint8Array(0);

/** One connection to a guest: calls and their answers, streams by number, until it is cut. */
export class Connection implements FrameHandler {
  readonly writer: FrameWriter;
  readonly #socket: Duplex;
  readonly #owner: ConnectionOwner;
  readonly #streams = new Map<number, StreamReceiver>();
  readonly #calls = new Map<number, PendingCall>();
  #nextCall = 1;
  /** Calls given up by their callers, whose answers may still come. */
  #abandoned = 0;
  /** Streams from here on were never opened. */
  #nextStream: number;
  /** The highest stream that the guest has opened. */
  #lastGuestStream = firstGuestStream - 1;
  /** Streams that the guest has opened and that are not over. */
  guestStreams = 0;
  /** Bytes that may still come on streams that we closed. */
  #strayBytes = 0;
  #closed = false;
  /** Something came since this was last set to false. */
  heard = false;

  /** Stream numbers below `nextStream` were in use before this connection. */
  constructor(socket: Duplex, nextStream: number, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.#nextStream = nextStream;
    this.writer = new FrameWriter(socket, () => this.close(new LinkViolation("it does not read")));
    const parser = new FrameParser(this);
    receive(socket, (chunk) => {
      if (this.#closed) return;
      this.heard = true;
      try {
        parser.push(chunk);
      } catch (error) {
        this.close(CaissonError.from(error));
      }
    });
    socket.on("end", () => this.close(new LinkCut()));
    socket.on("close", () => this.close(new LinkCut()));
    socket.on("error", () => this.close(new LinkCut()));
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Sends a call; it is on its way when this returns. Resolves with the answer that it `expects`;
   * `accept` gets it at once, before the frames that follow it are looked at.
   */
  call<C extends NonNullable<GuestMessage["case"]>>(
    expects: C,
    message: HostMessage,
    options: { signal?: AbortSignal; accept?: (value: Reply<C>) => void } = {},
  ): Promise<Reply<C>> {
    if (this.#closed) return Promise.reject(new LinkCut());
    const { signal, accept } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = this.#nextCall;
    this.#nextCall = id === 0xffff_ffff ? 1 : id + 1;
    return new Promise((resolve, reject) => {
      const abandon = () => {
        if (!this.#calls.delete(id)) return;
        this.#abandoned += 1;
        reject(signal?.reason);
      };
      const settled = () => signal?.removeEventListener("abort", abandon);
      this.#calls.set(id, {
        expects,
        resolve: (value) => {
          settled();
          accept?.(value as Reply<C>);
          resolve(value as Reply<C>);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
      signal?.addEventListener("abort", abandon, { once: true });
      this.writer.message(frameType.control, 0, encodeControl(id, message));
    });
  }

  /** Sends a message that wants no answer. */
  tell(message: HostMessage): void {
    if (!this.#closed) this.writer.message(frameType.control, 0, encodeControl(0, message));
  }

  /** From now on, frames of this stream go to `receiver`. */
  open(stream: number, receiver: StreamReceiver): void {
    this.#streams.set(stream, receiver);
    if (stream >= firstGuestStream) this.guestStreams += 1;
    else if (stream >= this.#nextStream) this.#nextStream = stream + 1;
  }

  /** Frames that still come on this stream are dropped. */
  drop(stream: number): void {
    const receiver = this.#streams.get(stream);
    if (!receiver) return;
    this.#strayBytes += receiver.room;
    this.#streams.delete(stream);
    if (stream >= firstGuestStream) this.guestStreams -= 1;
  }

  /** Gives a stream up in both directions. */
  reset(stream: number): void {
    if (!this.#streams.has(stream)) return;
    this.drop(stream);
    this.writer.message(frameType.reset, stream, empty);
  }

  /** Ends the connection, telling everyone who waits. The first reason counts. */
  close(error: CaissonError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.writer.close();
    closeSocket(this.#socket, error instanceof LinkViolation);
    const calls = [...this.#calls.values()];
    const streams = [...this.#streams.values()];
    this.#calls.clear();
    this.#streams.clear();
    for (const call of calls) call.reject(error);
    for (const stream of streams) stream.cut(error);
    this.#owner.closed(error);
  }

  data(stream: number, tag: number, piece: Uint8Array, left: number): void {
    const receiver = this.#streams.get(stream);
    if (receiver) receiver.data(tag, piece, left);
    else this.#stray(stream, piece.length);
  }

  message(type: number, stream: number, payload: Uint8Array): void {
    if (type === frameType.control) {
      this.#control(decodeControl(payload));
      return;
    }
    const receiver = this.#streams.get(stream);
    if (!receiver) this.#stray(stream, 0);
    else if (type === frameType.ack) receiver.ack(decodeAck(payload));
    else if (type === frameType.end) receiver.end();
    else receiver.reset(payload.length === 0 ? undefined : errorOfReset(payload));
  }

  #control(control: GuestControl): void {
    const { id, failure, message } = control;
    if (id === 0) {
      if (failure) throw new LinkViolation("a message that nobody asked for");
      if (message.case === "exited") this.#owner.exited(message.value);
      else if (message.case === "connect") this.#connected(message.value);
      else throw new LinkViolation("a message that nobody asked for");
      return;
    }
    const call = this.#calls.get(id);
    if (!call) {
      if (this.#abandoned === 0) throw new LinkViolation("an answer that nobody asked for");
      this.#abandoned -= 1;
      return;
    }
    this.#calls.delete(id);
    if (failure) call.reject(errorOfFailure(failure));
    else if (message.case === call.expects) this.#resolve(call, message.value);
    else this.#violate(call, new LinkViolation("an answer of the wrong kind"));
  }

  #connected(connect: Connect): void {
    if (connect.stream <= this.#lastGuestStream)
      throw new LinkViolation("a stream number that was used before");
    this.#lastGuestStream = connect.stream;
    this.#owner.connected(connect);
  }

  #resolve(call: PendingCall, value: unknown): void {
    try {
      call.resolve(value);
    } catch (error) {
      this.#violate(call, error as CaissonError);
    }
  }

  #violate(call: PendingCall, error: CaissonError): never {
    call.reject(error);
    throw error;
  }

  #stray(stream: number, bytes: number): void {
    const neverOpened =
      stream < firstGuestStream ? stream >= this.#nextStream : stream > this.#lastGuestStream;
    if (neverOpened) throw new LinkViolation("a frame on a stream that was never opened");
    this.#strayBytes -= bytes;
    if (this.#strayBytes < 0) throw new LinkViolation("DATA on a stream that is over");
  }
}

function errorOfReset(payload: Uint8Array): CaissonError {
  try {
    return errorOfFailure(fromBinary(FailureSchema, payload));
  } catch {
    throw new LinkViolation("a message that cannot be decoded");
  }
}

/** What was written last may still leave, unless the guest broke the rules or does not read it. */
function closeSocket(socket: Duplex, atOnce: boolean): void {
  if (atOnce || socket.destroyed) {
    socket.destroy();
    return;
  }
  socket.end(() => socket.destroy());
  setTimeout(() => socket.destroy(), 250).unref();
}
