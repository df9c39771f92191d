import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
} from "@bufbuild/protobuf";
import { CaissonError } from "../errors.ts";
import { rules } from "../rules.ts";
import { isWellKnown, type JsonKey, shapeOf } from "./names.ts";

/** Reads a message from the JSON that `encodeJson` writes. What is unknown or of the wrong type is refused. */
export function decodeJson<D extends DescMessage>(desc: D, json: JsonValue): MessageShape<D> {
  const standard = toStandard(desc, json, "", 0);
  try {
    return fromJson(desc, standard, { ignoreUnknownFields: false });
  } catch (cause) {
    throw new CaissonError("INVALID_INPUT", wordsOf(cause), { cause });
  }
}

/** Checks keys and rewrites `(json_text)` pairs into the base64 of the standard mapping. */
function toStandard(desc: DescMessage, json: JsonValue, path: string, depth: number): JsonValue {
  if (depth > rules.sizes.json_depth) throw refusal("the JSON is nested too deeply");
  if (isWellKnown(desc) || json === null) return json;
  if (!isObject(json)) throw refusal(`${path === "" ? "the body" : `\`${path}\``} must be an object`);
  const { keys } = shapeOf(desc);
  const standard: JsonObject = {};
  for (const [name, value] of Object.entries(json)) {
    const key = keys.get(name);
    const at = path === "" ? name : `${path}.${name}`;
    if (key === undefined) throw unknownField(desc, name, at);
    if (key.field.name in standard) throw refusal(`\`${at}\` is given twice, as text and as bytes`);
    standard[key.field.name] = standardValue(key, value, at, depth);
  }
  return standard;
}

function standardValue(key: JsonKey, value: JsonValue, path: string, depth: number): JsonValue {
  if (key.as === "text") {
    if (typeof value !== "string" || !value.isWellFormed()) throw refusal(`\`${path}\` must be a string`);
    return Buffer.from(value, "utf8").toString("base64");
  }
  const { field } = key;
  if (value === null) return value;
  if (field.fieldKind === "message") return toStandard(field.message, value, path, depth + 1);
  if (field.fieldKind === "list" && Array.isArray(value))
    return value.map((item, at) => standardItem(field, item, `${path}[${at}]`, depth));
  if (field.fieldKind === "map" && isObject(value)) return standardMap(field, value, path, depth);
  return value;
}

function standardMap(
  field: DescField & { fieldKind: "map" },
  json: JsonObject,
  path: string,
  depth: number,
): JsonObject {
  const standard: JsonObject = {};
  for (const [name, value] of Object.entries(json)) {
    if (name === "__proto__") throw refusal(`\`${path}\` may not have the key __proto__`);
    standard[name] = standardItem(field, value, `${path}.${name}`, depth);
  }
  return standard;
}

function standardItem(
  field: DescField & { fieldKind: "list" | "map" },
  item: JsonValue,
  path: string,
  depth: number,
): JsonValue {
  return field.message === undefined ? item : toStandard(field.message, item, path, depth + 1);
}

function unknownField(desc: DescMessage, name: string, path: string): CaissonError {
  const byJsonName = desc.fields.find((field) => field.jsonName === name && field.name !== name);
  const hint = byJsonName === undefined ? "" : `; it is called \`${byJsonName.name}\``;
  return refusal(`\`${printable(path)}\` is not a field of ${desc.name}${hint}`);
}

function wordsOf(cause: unknown): string {
  const words = cause instanceof Error ? cause.message : "the body does not fit";
  return printable(words).replace(/^cannot decode message [^ ]+ from JSON: /, "");
}

function isObject(json: JsonValue): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

/** Client input that goes back in an error: short, and nothing a terminal or log would act upon. */
function printable(text: string): string {
  return text
    .slice(0, 200)
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "?");
}

function refusal(message: string): CaissonError {
  return new CaissonError("INVALID_INPUT", message);
}
