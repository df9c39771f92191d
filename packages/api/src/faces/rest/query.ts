import { type DescMessage, type JsonObject, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { CaissonError } from "@caisson/contract";

const maxParameters = 256;

/** A query string as the JSON of a message: `field=value`, lists repeated, maps as `field[key]=value`. */
export function queryToJson(desc: DescMessage, query: string): JsonObject {
  const json: JsonObject = {};
  if (query === "") return json;
  const pairs = query.split("&");
  if (pairs.length > maxParameters) throw refusal("there are too many parameters");
  for (const pair of pairs) {
    const equals = pair.indexOf("=");
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? "" : decode(pair.slice(equals + 1));
    set(desc, json, name, value);
  }
  return json;
}

function set(desc: DescMessage, json: JsonObject, name: string, value: string): void {
  const entry = /^([a-z0-9_]+)\[(.+)\]$/.exec(name);
  const field = desc.fields.find((candidate) => candidate.name === (entry?.[1] ?? name));
  if (
    field === undefined ||
    field.message !== undefined ||
    (entry !== null) !== (field.fieldKind === "map")
  ) {
    throw refusal(`\`${name.slice(0, 100)}\` is not a parameter of ${desc.name}`);
  }
  if (field.fieldKind === "map") {
    json[field.name] ??= {};
    const key = entry![2]!;
    if (key === "__proto__") throw refusal(`\`${field.name}\` may not have the key __proto__`);
    (json[field.name] as JsonObject)[key] = scalar(field.scalar, value, field.name);
  } else if (field.fieldKind === "list") {
    json[field.name] ??= [];
    (json[field.name] as JsonValue[]).push(scalar(field.scalar, value, field.name));
  } else {
    if (Object.hasOwn(json, field.name)) throw refusal(`\`${field.name}\` is given twice`);
    json[field.name] = scalar(field.scalar, value, field.name);
  }
}

/** Numbers and enums are strings in JSON too; a flag's name alone sets it. */
function scalar(type: ScalarType | undefined, value: string, name: string): JsonValue {
  if (type !== ScalarType.BOOL) return value;
  if (value === "true" || value === "" || value === "1") return true;
  if (value === "false" || value === "0") return false;
  throw refusal(`\`${name}\` must be true or false`);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw refusal("the query string is not valid UTF-8 in percent-encoding");
  }
}

function refusal(message: string): CaissonError {
  return new CaissonError("INVALID_INPUT", message.replace(/[\u0000-\u001f\u007f-\u009f]/g, "?"));
}
