import { type CaissonError, rules } from "@caisson/contract";
import type { Request, Response } from "./types.ts";

/** How long a refused caller may go on sending what nobody reads. */
const lingerMs = 1000;

/** An error as REST clients see it: at most `sizes.error_body_bytes`, so that it is the message that gives way. */
export function errorBody(error: CaissonError, requestId: string): string {
  const encode = (message: string) =>
    JSON.stringify({
      error: {
        code: error.code,
        status: error.status,
        message,
        next_step: error.nextStep,
        request_id: requestId,
      },
    });
  const whole = encode(error.message);
  if (Buffer.byteLength(whole) <= rules.sizes.error_body_bytes) return whole;
  let { message } = error;
  let body = whole;
  while (message.length > 0 && Buffer.byteLength(body) > rules.sizes.error_body_bytes) {
    const excess = Buffer.byteLength(body) - rules.sizes.error_body_bytes;
    // At least one character goes each time; escapes make some of them longer than they look.
    message = message.slice(0, Math.max(0, message.length - Math.max(1, Math.ceil(excess / 6))));
    body = encode(`${message.toWellFormed()}…`);
  }
  return body;
}

/** Answers with an error. What the caller still sends is thrown away for a moment, then cut off. */
export function sendError(
  request: Request,
  response: Response,
  error: CaissonError,
  requestId: string,
  headers: Record<string, string> = {},
): void {
  if (response.headersSent) {
    // The status is out already; an answer that breaks off is the only way left to say it.
    response.destroy();
    return;
  }
  const body = errorBody(error, requestId);
  response.writeHead(error.httpStatus, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    "x-request-id": requestId,
    ...(error.code === "UNAUTHENTICATED" ? { "www-authenticate": "Bearer" } : {}),
    ...(error.code === "RATE_LIMITED" ? { "retry-after": "1" } : {}),
    ...(request.httpVersionMajor === 1 && !request.complete ? { connection: "close" } : {}),
    ...headers,
  });
  response.end(body);
  if (!request.complete) discard(request);
}

/** Reads on without keeping anything, so that the caller gets to see the answer. */
export function discard(request: Request): void {
  request.resume();
  const timer = setTimeout(() => request.destroy(), lingerMs);
  request.once("close", () => clearTimeout(timer));
}
