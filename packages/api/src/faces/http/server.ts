import { createServer as createHttp1Server, type Server as Http1Server } from "node:http";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import type { Socket } from "node:net";
import { CaissonError } from "@caisson/contract";
import { errorBody } from "./errors.ts";
import type { Gate } from "./gate.ts";
import type { HttpHandler } from "./handler.ts";
import type { Request, Response } from "./types.ts";

/** How long a client may take, in milliseconds. */
export interface HttpTimes {
  /** For a request's headers. */
  headersMs: number;
  /** For a whole request with its body: by default 256 MiB at about 1 MB/s. */
  requestMs: number;
  /** Between requests. */
  idleMs: number;
}

const defaultTimes: HttpTimes = { headersMs: 10_000, requestMs: 300_000, idleMs: 60_000 };
const headerBytes = 16 * 1024;
/** Requests on one HTTP/1.1 connection before it is renewed. */
const requestsPerSocket = 10_000;

type Listener = (request: Request, response: unknown) => void;

export interface HttpServers {
  http1(socket: Socket): void;
  http2(socket: Socket): void;
  close(): void;
}

/** HTTP servers without a port of their own: they are handed sockets. Bounded against slow and hostile clients. */
export function createHttpServers(gate: Gate, handle: HttpHandler, times = defaultTimes): HttpServers {
  const listener: Listener = (request, response) => handle(gate, request, response as Response);
  const http1 = hardenedHttp1(listener, times);
  const http2 = hardenedHttp2(listener, times);
  return {
    http1(socket) {
      http1.emit("connection", socket);
      socket.resume();
    },
    http2: (socket) => void http2.emit("connection", socket),
    close() {
      http1.close();
      http1.closeAllConnections();
      http2.close();
    },
  };
}

function hardenedHttp1(listener: Listener, times: HttpTimes): Http1Server {
  const server = createHttp1Server(
    {
      maxHeaderSize: headerBytes,
      headersTimeout: times.headersMs,
      requestTimeout: times.requestMs,
      keepAliveTimeout: times.idleMs,
      connectionsCheckingInterval: Math.min(2000, times.headersMs),
      requireHostHeader: true,
      rejectNonStandardBodyWrites: true,
      // A server stream is read for hours: only a request has to arrive in time.
      noDelay: true,
    },
    listener,
  );
  server.maxRequestsPerSocket = requestsPerSocket;
  // Slow requests are looked for from this event on, and a server without a port never has it.
  server.emit("listening");
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === "ECONNRESET") socket.destroy();
    else socket.end(malformedAnswer(error.code === "ERR_HTTP_REQUEST_TIMEOUT"));
  });
  return server;
}

/** For what is not even a request; nothing of it is repeated. */
function malformedAnswer(tooSlow: boolean): string {
  const error = tooSlow
    ? new CaissonError("DEADLINE_EXCEEDED", "the request took too long to arrive")
    : new CaissonError("INVALID_INPUT", "the request is not valid HTTP, or its headers are too long");
  const body = errorBody(error, "");
  const status = tooSlow ? "408 Request Timeout" : "400 Bad Request";
  return [
    `HTTP/1.1 ${status}`,
    "Connection: close",
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "",
    body,
  ].join("\r\n");
}

function hardenedHttp2(listener: Listener, times: HttpTimes): Http2Server {
  const server = createHttp2Server(
    {
      maxSessionInvalidFrames: 50,
      maxSessionRejectedStreams: 50,
      maxSessionMemory: 16,
      maxHeaderListPairs: 128,
      // Streams that are opened and reset at once cost the server more than the client.
      streamResetBurst: 200,
      streamResetRate: 20,
      settings: {
        enablePush: false,
        maxConcurrentStreams: 128,
        maxHeaderListSize: headerBytes,
        initialWindowSize: 1024 * 1024,
      },
    },
    listener,
  );
  server.on("session", (session) => {
    let streams = 0;
    session.on("stream", (stream) => {
      streams++;
      stream.once("close", () => streams--);
    });
    // A quiet stream is in use: only a connection without any is idle.
    session.setTimeout(times.idleMs, () => {
      if (streams === 0) session.close();
    });
    session.on("error", () => session.destroy());
  });
  server.on("sessionError", () => {});
  return server;
}
