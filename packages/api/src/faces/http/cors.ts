import type { Request, Response } from "./types.ts";

const requestHeaders = [
  "authorization",
  "caisson-attempt",
  "connect-protocol-version",
  "connect-timeout-ms",
  "content-type",
  "grpc-timeout",
  "idempotency-key",
  "last-event-id",
  "request-timeout-ms",
  "traceparent",
  "x-grpc-web",
  "x-user-agent",
];
const responseHeaders = ["grpc-message", "grpc-status", "grpc-status-details-bin", "etag", "x-request-id"];

/** Lets a page of an allowed origin read the answer. True when the request was only the browser asking. */
export function answerCors(request: Request, response: Response, origin: string | undefined): boolean {
  if (origin !== undefined) {
    response.setHeader("access-control-allow-origin", origin);
    response.setHeader("vary", "origin");
    response.setHeader("access-control-expose-headers", responseHeaders.join(", "));
  }
  if (request.method !== "OPTIONS") return false;
  if (origin !== undefined) {
    response.setHeader("access-control-allow-methods", "GET, POST, PUT, DELETE");
    response.setHeader("access-control-allow-headers", requestHeaders.join(", "));
    response.setHeader("access-control-max-age", "600");
  }
  response.writeHead(204);
  response.end();
  return true;
}
