import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { CaissonError, rules } from "@caisson/contract";
import { decodeJson, parseJson } from "@caisson/contract/json";
import { checkEncoding, declaredLength, hasBody, readBody } from "../http/body.ts";
import { one } from "../http/call.ts";
import type { HttpCall, Request } from "../http/types.ts";
import { queryToJson } from "./query.ts";
import type { RestMatch, RestRoute } from "./routes.ts";

type Fields = Record<string, unknown>;

/** What the handler gets: a message, or the messages of a raw body. */
export async function readInput(
  { route, values }: RestMatch,
  request: Request,
  call: HttpCall,
): Promise<unknown> {
  const json = queryToJson(route.method.input, call.query);
  if (route.body === "*") merge(json, await readJson(request));
  else if (route.body === "" && hasBody(request)) throw refusal("this request takes no body");
  for (const [field, value] of Object.entries(values)) bind(json, field, value);
  bindHeaders(route, json, request);
  const message = decodeJson(route.method.input, json);
  if (!route.takesStream) return message;
  checkEncoding(request);
  checkLength(route, request);
  return rawMessages(route, message as unknown as Fields, request);
}

/** What announces itself as too large is refused before it is sent. Archives have no bound. */
function checkLength(route: RestRoute, request: Request): void {
  const limit = rules.sizes.file_transfer_bytes;
  if (route.method.name === "WriteFile" && declaredLength(request) > limit)
    throw new CaissonError("TOO_LARGE", `a file may have at most ${limit} bytes in one call`);
}

async function readJson(request: Request): Promise<JsonObject> {
  if (!hasBody(request)) return {};
  // A web page can send other types without asking first.
  if (!/^application\/json *(; *charset=utf-8 *)?$/i.test(request.headers["content-type"] ?? "")) {
    throw refusal("the body's `Content-Type` must be application/json");
  }
  const bytes = await readBody(request);
  if (bytes.length === 0) return {};
  const json = parseJson(bytes);
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw refusal("the body must be an object");
  return json;
}

function merge(json: JsonObject, body: JsonObject): void {
  for (const name of Object.keys(json)) {
    if (Object.hasOwn(body, name)) throw refusal(`\`${name}\` is given twice, in the query and in the body`);
  }
  for (const [name, value] of Object.entries(body)) {
    Object.defineProperty(json, name, { value, enumerable: true, configurable: true, writable: true });
  }
}

/** The path names a thing; a body or query that names another one is a mistake. */
function bind(json: JsonObject, field: string, value: JsonValue): void {
  if (Object.hasOwn(json, field) && json[field] !== value) {
    throw refusal(`\`${field}\` differs between the path or header and the rest of the request`);
  }
  json[field] = value;
}

function bindHeaders(route: RestRoute, json: JsonObject, request: Request): void {
  const has = (name: string) => route.method.input.fields.some((field) => field.name === name);
  const key = one(request.headers["idempotency-key"]);
  if (key !== undefined && has("idempotency_key")) bind(json, "idempotency_key", key);
  // A browser that reconnects repeats its URL: the header is the newer word.
  const last = one(request.headers["last-event-id"]);
  if (last !== undefined && route.answersStream && has("from")) {
    if (!/^[0-9]{1,20}$/.test(last)) throw refusal("`Last-Event-ID` must be a number");
    json.from = last;
  }
}

/** The first message has every field but the bytes; they follow as they come. */
async function* rawMessages(route: RestRoute, first: Fields, request: Request): AsyncGenerator<unknown> {
  yield first;
  const field = route.method.input.fields.find(({ name }) => name === route.body)!;
  for await (const chunk of request) yield create(route.method.input, { [field.localName]: chunk } as never);
}

function refusal(message: string): CaissonError {
  return new CaissonError("INVALID_INPUT", message);
}
