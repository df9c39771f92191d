import { create, type DescMessage, type MessageInitShape, ScalarType } from "@bufbuild/protobuf";
import { CaissonError, type CallContext } from "@caisson/contract";
import { encodeJson } from "@caisson/contract/json";
import type { Log } from "../../deps.ts";
import { sendError } from "../http/errors.ts";
import { type HttpCall, isGone, type Request, type Response } from "../http/types.ts";
import { type LimitedCall, limitCall } from "./deadline.ts";
import { readInput } from "./input.ts";
import { mergeMessages } from "./merge.ts";
import { sendRaw } from "./raw.ts";
import type { RestMatch, RestRoute } from "./routes.ts";
import { sendEvents } from "./sse.ts";

/** Carries out a request of the REST face, which has passed the gate. */
export async function handleRest(
  match: RestMatch,
  request: Request,
  response: Response,
  call: HttpCall,
  log: Log,
): Promise<void> {
  const { route } = match;
  let limited: LimitedCall | undefined;
  try {
    limited = limitCall(request, call);
    await answer(match, request, response, limited);
  } catch (thrown) {
    const error = CaissonError.from(thrown);
    if (error.code === "INTERNAL") {
      const { name } = route.method;
      log("error", "a call failed", {
        method: name,
        request_id: call.requestId,
        error: error.cause ?? error,
      });
    }
    sendError(request, response, error, call.requestId);
  } finally {
    limited?.done();
  }
}

async function answer(
  match: RestMatch,
  request: Request,
  response: Response,
  { call, within, each }: LimitedCall,
): Promise<void> {
  const { route } = match;
  const input = await within(readInput(match, request, call));
  call.signal.throwIfAborted();
  const output = route.handler(input, call);
  if (!route.answersStream) return sendJson(route, await within(output as Promise<unknown>), response, call);
  const messages = each(output as AsyncIterable<unknown>);
  if (route.collects) await sendCollected(route, messages, response, call);
  else if (isBytes(route)) await sendRaw(route, input, messages, response, call);
  else await sendEvents(route, messages, response, call);
}

async function sendCollected(
  route: RestRoute,
  messages: AsyncIterable<unknown>,
  response: Response,
  call: CallContext,
): Promise<void> {
  const all: MessageInitShape<DescMessage>[] = [];
  for await (const message of messages) all.push(message as MessageInitShape<DescMessage>);
  sendJson(route, mergeMessages(route.method.output, all), response, call);
}

function sendJson(route: RestRoute, message: unknown, response: Response, call: CallContext): void {
  if (isGone(response)) return;
  const desc = route.method.output;
  const whole = create(desc, message as MessageInitShape<typeof desc>);
  const body = Buffer.from(JSON.stringify(encodeJson(desc, whole)));
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": String(body.length),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-request-id": call.requestId,
  });
  response.end(body);
}

function isBytes(route: RestRoute): boolean {
  const field = route.responseField;
  return field?.fieldKind === "scalar" && field.scalar === ScalarType.BYTES;
}
