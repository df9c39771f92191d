import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { CaissonError, type CallContext } from "@caisson/contract";
import { encodeJson } from "@caisson/contract/json";
import { errorBody } from "../http/errors.ts";
import { carrierOf, isGone, type Response } from "../http/types.ts";
import type { RestRoute } from "./routes.ts";
import { writePart } from "./writer.ts";

/** Between comments that keep intermediaries from closing a quiet stream. */
const keepAliveMs = 15_000;
/** An error that comes this soon still gets its HTTP status; then the stream is open, quiet or not. */
const openAfterMs = 200;

type Fields = Record<string, unknown>;

/** Sends a stream as server-sent events. Throws only before anything was sent. */
export async function sendEvents(
  route: RestRoute,
  messages: AsyncIterable<unknown>,
  response: Response,
  call: CallContext,
): Promise<void> {
  const iterator = messages[Symbol.asyncIterator]();
  let keepAlive: NodeJS.Timeout | undefined;
  const open = () => {
    if (response.headersSent || isGone(response)) return;
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      "x-request-id": call.requestId,
    });
    response.flushHeaders?.();
    keepAlive = setInterval(() => {
      if (!carrierOf(response).writableNeedDrain) response.write(":\n\n");
    }, keepAliveMs);
  };
  const opening = setTimeout(open, openAfterMs);
  const stopTimers = () => {
    clearTimeout(opening);
    clearInterval(keepAlive);
  };
  response.once("close", stopTimers);
  try {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      open();
      await writePart(response, eventText(route, next.value as Fields));
    }
    open();
    response.end();
  } catch (thrown) {
    const error = CaissonError.from(thrown);
    if (!response.headersSent) throw error;
    if (!isGone(response)) response.end(`event: error\ndata: ${errorBody(error, call.requestId)}\n\n`);
  } finally {
    stopTimers();
    await iterator.return?.();
  }
}

/** One message: its number as the id, the chosen field's name as the event, and that field as the data. */
function eventText(route: RestRoute, message: Fields): string {
  const field = route.responseField;
  const desc: DescMessage = field?.message ?? route.method.output;
  const event = (field === undefined ? message : message[field.localName]) as Fields;
  const id = typeof event.seq === "bigint" ? `id: ${event.seq}\n` : "";
  const oneof = desc.oneofs[0];
  const chosen =
    oneof === undefined ? undefined : (event[oneof.localName] as { case?: string; value?: unknown });
  const inner = oneof?.fields.find(({ localName }) => localName === chosen?.case);
  if (inner?.message !== undefined) {
    return `${id}event: ${inner.name}\ndata: ${jsonText(inner.message, chosen!.value)}\n\n`;
  }
  return `${id}data: ${jsonText(desc, event)}\n\n`;
}

function jsonText(desc: DescMessage, message: unknown): string {
  return JSON.stringify(encodeJson(desc, create(desc, message as MessageInitShape<DescMessage>)));
}
