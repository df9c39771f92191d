import { type DescField, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import { Scope } from "@caisson/contract";
import { scopeName, scopeOf } from "../auth/identity.ts";
import type { RestRoute } from "../faces/rest/routes.ts";
import { commentOf } from "./comments.ts";
import type { Json, Schemas } from "./schemas.ts";

/** One route as an OpenAPI operation. */
export function operationOf(route: RestRoute, schemas: Schemas): Json {
  const { method } = route;
  const comment = commentOf(method);
  const scope = scopeOf(method);
  const bound = new Set(pathFields(route));
  const body = requestBody(route, schemas, bound);
  return {
    operationId: method.localName,
    tags: [method.parent.name.replace(/Service$/, "")],
    ...(comment === "" ? {} : { summary: firstSentence(comment), description: comment }),
    parameters: parameters(route, schemas, bound),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: {
      200: { description: "It worked.", content: answer(route, schemas) },
      default: { $ref: "#/components/responses/Error" },
    },
    security: scope === Scope.PUBLIC ? [{}] : [{ key: [] }],
    "x-scope": scopeName(scope),
  };
}

function pathFields(route: RestRoute): string[] {
  return route.template.segments.flatMap((segment) => ("field" in segment ? [segment.field] : []));
}

function parameters(route: RestRoute, schemas: Schemas, bound: ReadonlySet<string>): Json[] {
  const { fields } = route.method.input;
  const inPath = fields
    .filter(({ name }) => bound.has(name))
    .map((field) => parameter(field, "path", schemas));
  const inQuery =
    route.body === "*"
      ? []
      : fields.filter(
          (field) =>
            !bound.has(field.name) &&
            field.name !== route.body &&
            field.name !== "idempotency_key" &&
            field.message === undefined,
        );
  const headers: Json[] = [];
  if (fields.some(({ name }) => name === "idempotency_key")) {
    headers.push(header("Idempotency-Key", "Makes a repeated call return the first call's result."));
  }
  if (route.answersStream && fields.some(({ name }) => name === "from")) {
    headers.push(header("Last-Event-ID", "Resume after this number; sent by browsers when they reconnect."));
  }
  return [...inPath, ...inQuery.map((field) => parameter(field, "query", schemas)), ...headers];
}

function parameter(field: DescField, place: "path" | "query", schemas: Schemas): Json {
  const { description, ...schema } = schemas.field(field);
  return {
    name: field.name,
    in: place,
    ...(place === "path" ? { required: true } : {}),
    ...(description === undefined ? {} : { description }),
    ...(field.fieldKind === "map" ? { style: "deepObject", explode: true } : {}),
    schema,
  };
}

function header(name: string, description: string): Json {
  return { name, in: "header", description, schema: { type: "string" } };
}

function requestBody(route: RestRoute, schemas: Schemas, bound: ReadonlySet<string>): Json | undefined {
  if (route.body === "") return undefined;
  if (route.body !== "*") {
    return {
      required: true,
      content: { "application/octet-stream": { schema: {} } },
      description: "The bytes themselves.",
    };
  }
  return { content: { "application/json": { schema: schemas.messageWithout(route.method.input, bound) } } };
}

function answer(route: RestRoute, schemas: Schemas): Json {
  const { method, responseField } = route;
  if (!route.answersStream || route.collects) {
    return { "application/json": { schema: schemas.message(method.output) } };
  }
  if (responseField?.scalar === ScalarType.BYTES) return { "application/octet-stream": { schema: {} } };
  const event = responseField?.message ?? method.output;
  return { "text/event-stream": { schema: schemas.message(event), "x-events": eventNames(event) } };
}

/** Names of server-sent events: the fields of the message's oneof, whose JSON is then the data. */
function eventNames(event: DescMethod["output"]): string[] {
  return event.oneofs[0]?.fields.map(({ name }) => name) ?? ["message"];
}

export function firstSentence(text: string): string {
  return (/^.*?[.:](?= |$)/.exec(text)?.[0] ?? text).replace(/[.:]$/, "");
}
