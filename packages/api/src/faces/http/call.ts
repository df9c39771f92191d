import { randomUUID } from "node:crypto";
import { parseAttempt, parseTraceparent, rules } from "@caisson/contract";
import { carrierOf, type HttpCall, isGone, type Request, type Response } from "./types.ts";

/** The call behind a request: aborted when the caller leaves before the answer is complete. */
export function beginHttpCall(
  request: Request,
  response: Response,
  path: string,
  query: string,
): Omit<HttpCall, "actor"> {
  const controller = new AbortController();
  const closed = () => {
    const finished = carrierOf(response).writableFinished;
    if (!finished) controller.abort(new DOMException("the caller has gone", "AbortError"));
  };
  // A stream can be reset before anybody looks at it; then nothing more is heard of it.
  if (isGone(response)) closed();
  else response.once("close", closed);
  const traceparent = one(request.headers.traceparent);
  const attempt = parseAttempt(one(request.headers[rules.retry.attempt_header]));
  return {
    path,
    query,
    signal: controller.signal,
    requestId: randomUUID(),
    ...(traceparent !== undefined && parseTraceparent(traceparent) !== undefined ? { traceparent } : {}),
    ...(attempt === undefined ? {} : { attempt }),
  };
}

export function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
