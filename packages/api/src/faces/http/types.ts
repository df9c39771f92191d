import type { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Writable } from "node:stream";
import type { CallContext } from "@caisson/contract";

/** HTTP/1.1 and HTTP/2 alike. */
export type Request = IncomingMessage | Http2ServerRequest;

/** What both kinds of response have. */
export interface Response extends EventEmitter {
  readonly headersSent: boolean;
  setHeader(name: string, value: string): unknown;
  writeHead(status: number, headers?: Record<string, string>): unknown;
  /** HTTP/1.1 keeps headers back for the first part of the body. */
  flushHeaders?(): void;
  write(part: string | Uint8Array): boolean;
  end(part?: string | Uint8Array): unknown;
  destroy(): unknown;
}

/** The stream that carries a response: HTTP/2 has one of its own behind it, HTTP/1.1 is it. */
export function carrierOf(response: Response): Writable {
  return "stream" in response ? (response.stream as Writable) : (response as unknown as Writable);
}

/** Nobody reads the answer any more. */
export function isGone(response: Response): boolean {
  return carrierOf(response).destroyed;
}

/** A request that has passed the gate. */
export interface HttpCall extends CallContext {
  readonly path: string;
  readonly query: string;
}
