// Checks a request against what Firecracker publishes of its API; what is not described is refused.
import description from "./api-description.json" with { type: "json" };

interface Schema {
  $ref?: string;
  type?: string;
  enum?: readonly string[];
  minimum?: number;
  maximum?: number;
  required?: readonly string[];
  properties?: Record<string, Schema>;
  items?: Schema;
}

type Calls = Record<string, Record<string, { body?: string; success: number }>>;

const calls = description.paths as Calls;
const definitions = description.definitions as Record<string, Schema>;

/** The status of success, or what is wrong with the request. */
export function checkRequest(method: string, path: string, body: unknown): number | string {
  const place = Object.keys(calls).find((one) =>
    new RegExp(`^${one.replace(/\{\w+\}/g, "\\w+")}$`).test(path),
  );
  const call = place === undefined ? undefined : calls[place]?.[method];
  if (call === undefined) return `Invalid request method and/or path: ${method} ${path}.`;
  if (call.body === undefined) return body === undefined ? call.success : "a body is not expected";
  return check(body, { $ref: `#/definitions/${call.body}` }, "body") ?? call.success;
}

function check(value: unknown, schema: Schema, at: string): string | undefined {
  if (schema.$ref !== undefined) return check(value, definitions[schema.$ref.split("/").at(-1)!]!, at);
  switch (schema.type) {
    case "string":
      if (typeof value !== "string") return `${at} is not a string`;
      return schema.enum && !schema.enum.includes(value) ? `${at} is not one of ${schema.enum}` : undefined;
    case "boolean":
      return typeof value === "boolean" ? undefined : `${at} is not a boolean`;
    case "integer": {
      const inRange =
        Number.isInteger(value) &&
        (value as number) >= (schema.minimum ?? 0) &&
        (value as number) <= (schema.maximum ?? Number.MAX_SAFE_INTEGER);
      return inRange ? undefined : `${at} is not such a number`;
    }
    case "array":
      if (!Array.isArray(value)) return `${at} is not a list`;
      return value.map((item, index) => check(item, schema.items!, `${at}[${index}]`)).find(Boolean);
    default:
      return checkObject(value, schema, at);
  }
}

function checkObject(value: unknown, schema: Schema, at: string): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return `${at} is not an object`;
  const lacking = schema.required?.find((name) => !Object.hasOwn(value, name));
  if (lacking !== undefined) return `${at} lacks ${lacking}`;
  for (const [name, inner] of Object.entries(value)) {
    const property = schema.properties?.[name];
    if (property === undefined) return `${at} has an unknown field ${name}`;
    const wrong = check(inner, property, `${at}.${name}`);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}
