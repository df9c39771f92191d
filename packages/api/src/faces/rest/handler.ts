import { create, type DescMessage, type MessageInitShape, ScalarType } from "@bufbuild/protobuf";
import { CaissonError, type CallContext } from "@caisson/contract";
import { encodeJson } from "@caisson/contract/json";
import type { Log } from "../../deps.ts";
import { sendError } from "../http/errors.ts";
import { type HttpCall, isGone, type Request, type Response } from "../http/types.ts";
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
  try {
    const input = await readInput(match, request, call);
    call.signal.throwIfAborted();
    const output = route.handler(input, call);
    if (!route.answersStream) sendJson(route, await output, response, call);
    else if (route.collects) await sendCollected(route, output as AsyncIterable<unknown>, response, call);
    else if (isBytes(route)) await sendRaw(route, input, output as AsyncIterable<unknown>, response, call);
    else await sendEvents(route, output as AsyncIterable<unknown>, response, call);
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
  }
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
