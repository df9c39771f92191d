// Calls any method over REST by its annotation, and turns the answer back into messages.
import {
  create,
  type DescMethod,
  type JsonObject,
  type JsonValue,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { CaissonError, type ServedService } from "@caisson/contract";
import { decodeJson, encodeJson } from "@caisson/contract/json";
import { createRestRoutes, type RestRoute } from "../src/faces/rest/routes.ts";

export class RestClient {
  readonly #url: string;
  readonly #key: string;
  readonly #routes: Map<string, RestRoute>;

  constructor(url: string, key: string, services: readonly ServedService[]) {
    this.#url = url;
    this.#key = key;
    this.#routes = new Map(createRestRoutes(services).map((route) => [route.method.name, route]));
  }

  async call(method: DescMethod, requests: readonly object[]): Promise<Message[]> {
    const route = this.#routes.get(method.name)!;
    const { url, body, type } = this.#request(route, requests);
    const response = await fetch(url, {
      method: route.verb,
      headers: {
        authorization: `Bearer ${this.#key}`,
        ...(type === undefined ? {} : { "content-type": type }),
      },
      body: body ?? null,
    });
    if (!response.ok) {
      const { error } = (await response.json()) as { error: { code: never; message: string } };
      throw new CaissonError(error.code, error.message);
    }
    return await answers(route, response);
  }

  #request(
    route: RestRoute,
    requests: readonly object[],
  ): { url: string; body?: string | Uint8Array<ArrayBuffer>; type?: string } {
    const first = create(route.method.input, requests[0] as never);
    // Only what is set, under its proto name.
    const json = toJson(route.method.input, first, { useProtoFieldName: true }) as JsonObject;
    let path = "";
    for (const segment of route.template.segments) {
      path +=
        "literal" in segment ? `/${segment.literal}` : `/${encodeURIComponent(String(json[segment.field]))}`;
      if ("field" in segment) delete json[segment.field];
    }
    if (route.template.verb !== "") path += `:${route.template.verb}`;
    const url = this.#url + path;
    if (route.body === "*") {
      const whole = encodeJson(route.method.input, first) as JsonObject;
      for (const segment of route.template.segments) if ("field" in segment) delete whole[segment.field];
      return { url, body: JSON.stringify(whole), type: "application/json" };
    }
    delete json[route.body];
    const query = queryOf(json);
    if (route.body === "") return { url: url + query };
    const parts = (requests as { data?: Uint8Array }[]).map(({ data }) => data ?? new Uint8Array(0));
    return { url: url + query, body: new Uint8Array(Buffer.concat(parts)), type: "application/octet-stream" };
  }
}

function queryOf(json: JsonObject): string {
  const pairs = Object.entries(json).flatMap(([name, value]) => {
    if (Array.isArray(value)) return value.map((item) => [name, item]);
    if (typeof value === "object")
      return Object.entries(value!).map(([key, item]) => [`${name}[${key}]`, item]);
    return [[name, value]];
  });
  return pairs.length === 0
    ? ""
    : `?${pairs.map((pair) => pair.map((part) => encodeURIComponent(String(part))).join("=")).join("&")}`;
}

async function answers(route: RestRoute, response: Response): Promise<Message[]> {
  const desc = route.method.output;
  const type = response.headers.get("content-type");
  if (type === "application/json") return [decodeJson(desc, (await response.json()) as JsonValue)];
  if (type === "application/octet-stream") {
    const data = new Uint8Array(await response.arrayBuffer());
    return [create(desc, { [route.responseField!.localName]: data } as never)];
  }
  return parseEvents(await response.text()).map(({ event, data, id }) => {
    const inner: JsonObject = event === undefined ? (data as JsonObject) : { [event]: data };
    if (event !== undefined && id !== undefined) inner.seq = id;
    return decodeJson(desc, { [route.responseField!.name]: inner });
  });
}

export interface ServerSentEvent {
  id?: string;
  event?: string;
  data: JsonValue;
}

export function parseEvents(text: string): ServerSentEvent[] {
  return text
    .split("\n\n")
    .filter((block) => block !== "" && !block.startsWith(":"))
    .map((block) => {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2)));
      return { ...fields, data: JSON.parse(fields.data!) } as ServerSentEvent;
    });
}

export function isRaw(method: DescMethod): boolean {
  return method.output.fields.some(
    (field) => field.fieldKind === "scalar" && field.scalar === ScalarType.BYTES,
  );
}
