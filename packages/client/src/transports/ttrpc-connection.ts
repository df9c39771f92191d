import { connect, type Socket } from "node:net";
import { CaissonError } from "@caisson/contract/errors";
import { decodeStatus } from "@caisson/contract/status";
import { decodeResponse, FrameDecoder, flag, messageType } from "@caisson/contract/ttrpc";

/** Every socket reads into this one buffer: each read is taken apart before the next one begins. */
const readBuffer = Buffer.allocUnsafeSlow(256 * 1024);

/** What a stream of one connection hears. */
export interface StreamListener {
  data(payload: Buffer): void;
  /** Nothing more will come, and all is well. */
  end(): void;
  /** The last word: a status that is not OK, or the payload of a single answer. */
  response(payload: Buffer): void;
  cut(error: CaissonError): void;
  /** False: read no more for now. */
  hungry(): boolean;
}

interface Pending {
  resolve: (payload: Buffer) => void;
  reject: (error: CaissonError) => void;
  timer: NodeJS.Timeout | undefined;
}

/** One socket that speaks ttRPC. It keeps the process alive only while something is awaited. */
export class Connection {
  readonly #socket: Socket;
  readonly #path: string;
  readonly #calls = new Map<number, Pending>();
  #listener: { stream: number; to: StreamListener } | undefined;
  #nextStream = 1;
  #connected = false;
  #failure: Error | undefined;
  closed = false;
  onClose: (() => void) | undefined;

  constructor(path: string) {
    this.#path = path;
    const decoder = new FrameDecoder(
      {
        frame: (stream, type, flags, payload) => this.#frame(stream, type, flags, payload),
        oversize: () => this.#socket.destroy(new Error("a message was too long")),
      },
      { chunksAreReused: true },
    );
    this.#socket = connect({
      path,
      onread: {
        buffer: readBuffer,
        callback: (bytes, buffer) => {
          decoder.push((buffer as Buffer).subarray(0, bytes));
          return this.#listener?.to.hungry() ?? true;
        },
      },
    });
    this.#socket.on("connect", () => {
      this.#connected = true;
    });
    this.#socket.on("error", (error) => {
      this.#failure = error;
    });
    this.#socket.on("end", () => this.#socket.destroy());
    this.#socket.on("close", () => this.#cut());
    this.#socket.unref();
  }

  unary(frame: (stream: number) => Uint8Array[], timeoutMs: number | undefined): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(this.#error());
      const stream = this.#takeStream();
      const parts = frame(stream);
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => this.#expire(stream), timeoutMs);
      if (this.#calls.size === 0) this.#socket.ref();
      this.#calls.set(stream, { resolve, reject, timer });
      this.write(parts);
    });
  }

  /** Gives the whole connection to one stream; returns the stream's number. */
  begin(listener: StreamListener): number {
    const stream = this.#takeStream();
    this.#listener = { stream, to: listener };
    this.#socket.ref();
    if (this.closed) queueMicrotask(() => listener.cut(this.#error()));
    return stream;
  }

  /** The stream is over in both directions; the connection can serve another. */
  finish(): void {
    this.#listener = undefined;
    this.#socket.unref();
  }

  /** Writes a frame; false when the kernel has enough for now, see `drained`. */
  write(parts: Uint8Array[]): boolean {
    if (parts.length === 1) return this.#socket.write(parts[0]!);
    this.#socket.cork();
    let room = true;
    for (const part of parts) room = this.#socket.write(part);
    this.#socket.uncork();
    return room;
  }

  /** Resolves when more may be written, or when there is no point in it any more. */
  drained(): Promise<void> {
    if (this.closed) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        this.#socket.off("drain", done);
        this.#socket.off("close", done);
        resolve();
      };
      this.#socket.on("drain", done);
      this.#socket.on("close", done);
    });
  }

  resume(): void {
    this.#socket.resume();
  }

  destroy(): void {
    this.#listener = undefined;
    this.closed = true;
    this.#socket.destroy();
  }

  #takeStream(): number {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    return stream;
  }

  #frame(stream: number, type: number, flags: number, payload: Buffer): void {
    if (this.#listener?.stream === stream) {
      const { to } = this.#listener;
      if (type === messageType.response) to.response(payload);
      else if ((flags & flag.noData) === 0) to.data(payload);
      if (type === messageType.data && (flags & flag.remoteClosed) !== 0) to.end();
      return;
    }
    const call = this.#settle(stream);
    if (!call) return;
    try {
      const { status, payload: message } = decodeResponse(payload);
      if (status) call.reject(decodeStatus(status));
      else call.resolve(message);
    } catch (thrown) {
      call.reject(new CaissonError("INTERNAL", "the server's answer could not be read", { cause: thrown }));
    }
  }

  #settle(stream: number): Pending | undefined {
    const call = this.#calls.get(stream);
    if (!call) return undefined;
    this.#calls.delete(stream);
    clearTimeout(call.timer);
    if (this.#calls.size === 0 && !this.#listener) this.#socket.unref();
    return call;
  }

  #expire(stream: number): void {
    this.#settle(stream)?.reject(new CaissonError("DEADLINE_EXCEEDED", "the call took too long"));
  }

  #cut(): void {
    this.closed = true;
    const error = this.#error();
    for (const stream of [...this.#calls.keys()]) this.#settle(stream)?.reject(error);
    this.#listener?.to.cut(error);
    this.#listener = undefined;
    this.onClose?.();
  }

  #error(): CaissonError {
    const message = this.#connected
      ? "the connection to the daemon was cut"
      : `no daemon answers at ${this.#path}; start it with \`caisson daemon start\``;
    return new CaissonError("UNAVAILABLE", message, { cause: this.#failure });
  }
}
