import { createServer, IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Duplex } from "node:stream";

export const maxHeadBytes = 64 * 1024;
/** More than the server's answers to all requests that fit into one piece: beyond it, it would stop to listen. */
const answerBytes = 1024 * 1024;

/** A connection to Node's HTTP server that exists to be read by its parser: what the server answers goes nowhere. */
export class Mirror extends Duplex {
  #read: { message: IncomingMessage; response: ServerResponse }[] = [];
  #broken = false;

  constructor() {
    super({ writableHighWaterMark: answerBytes });
    this.on("error", () => {});
    reader ??= makeReader();
    reader.emit("connection", this);
  }

  override _read(): void {}

  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
  }

  add(message: IncomingMessage, response: ServerResponse): void {
    this.#read.push({ message, response });
    message.resume();
  }

  break(): void {
    this.#broken = true;
  }

  /** The one request that these bytes are the head of. */
  show(head: Buffer): IncomingMessage | undefined {
    if (this.#read.length > 0 || !this.#give(head)) return undefined;
    return this.#read.length === 1 ? this.#read[0]!.message : undefined;
  }

  /** Bytes of that request's body: is there still that one request? */
  showBody(bytes: Buffer): boolean {
    return this.#give(bytes) && this.#read.length === 1;
  }

  /** Has the parser read it? It is asked only while the server listens, and never again after an error. */
  #give(bytes: Buffer): boolean {
    if (this.#broken || this.destroyed || this.isPaused()) return false;
    try {
      this.emit("data", bytes);
    } catch {
      this.#broken = true;
    }
    return !this.#broken;
  }

  get isWhole(): boolean {
    return this.#read[0]?.message.complete ?? false;
  }

  /** The request is over, if it is. */
  finish(): boolean {
    if (!this.isWhole) return false;
    this.#read.pop()!.response.end();
    return true;
  }
}

/** Bodies are passed on elsewhere: nothing of them is kept, and nobody has to read them. */
class Bodiless extends IncomingMessage {
  override push(chunk: unknown): boolean {
    return chunk === null ? super.push(null) : true;
  }
}

let reader: Server | undefined;

function makeReader(): Server {
  const server = createServer({
    maxHeaderSize: maxHeadBytes,
    keepAliveTimeout: 0,
    requestTimeout: 0,
    headersTimeout: 0,
    IncomingMessage: Bodiless,
  });
  server.on("request", (message, response) => (message.socket as Duplex as Mirror).add(message, response));
  server.on("clientError", (_error, socket) => (socket as Duplex as Mirror).break());
  return server;
}
