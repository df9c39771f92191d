import type { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { CallContext } from "@caisson/contract";

/** HTTP/1.1 and HTTP/2 alike. */
export type Request = IncomingMessage | Http2ServerRequest;

/** What both kinds of response have. */
export interface Response extends EventEmitter {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly writableFinished: boolean;
  readonly writableNeedDrain: boolean;
  setHeader(name: string, value: string): unknown;
  writeHead(status: number, headers?: Record<string, string>): unknown;
  /** HTTP/1.1 keeps headers back for the first part of the body. */
  flushHeaders?(): void;
  write(part: string | Uint8Array): boolean;
  end(part?: string | Uint8Array): unknown;
  destroy(): unknown;
}

/** A request that has passed the gate. */
export interface HttpCall extends CallContext {
  readonly path: string;
  readonly query: string;
}
