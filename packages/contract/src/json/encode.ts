import { isUtf8 } from "node:buffer";
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonValue,
  type MessageShape,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { isWellKnown, shapeOf } from "./names.ts";

type Fields = Record<string, unknown>;
type JsonObject = Record<string, JsonValue>;

/**
 * A message as the JSON that REST clients see: proto field names, enums by name, 64-bit integers as
 * strings, bytes as text where they are text. Scalars, lists and maps are always there, messages only when set.
 */
export function encodeJson<D extends DescMessage>(desc: D, message: MessageShape<D>): JsonValue {
  if (isWellKnown(desc)) return toJson(desc, message);
  const json: JsonObject = {};
  for (const { field, text } of shapeOf(desc).fields) {
    const value = fieldValue(field, message as unknown as Fields);
    if (value === undefined) continue;
    if (text === undefined) define(json, field.name, encodeField(field, value));
    else encodeText(json, text, value as Uint8Array);
  }
  return json;
}

function fieldValue(field: DescField, message: Fields): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const chosen = message[field.oneof.localName] as { case?: string; value?: unknown } | undefined;
  return chosen?.case === field.localName ? chosen.value : undefined;
}

function encodeText(json: JsonObject, keys: { text: string; bytes: string }, value: Uint8Array): void {
  if (isUtf8(value))
    define(json, keys.text, Buffer.from(value.buffer, value.byteOffset, value.length).toString("utf8"));
  else define(json, keys.bytes, toBase64(value));
}

function encodeField(field: DescField, value: unknown): JsonValue {
  switch (field.fieldKind) {
    case "scalar":
      return encodeScalar(field.scalar, value);
    case "enum":
      return encodeEnum(field.enum, value as number);
    case "message":
      // A Struct inside a message is plain JSON already.
      if (field.message.typeName === "google.protobuf.Struct") return value as JsonValue;
      return encodeJson(field.message, value as never);
    case "list":
      return (value as unknown[]).map((item) => encodeItem(field, item));
    case "map": {
      const json: JsonObject = {};
      for (const [key, item] of Object.entries(value as Fields)) define(json, key, encodeItem(field, item));
      return json;
    }
  }
}

function encodeItem(field: DescField & { fieldKind: "list" | "map" }, item: unknown): JsonValue {
  const kind = field.fieldKind === "list" ? field.listKind : field.mapKind;
  if (kind === "message") return encodeJson(field.message!, item as never);
  if (kind === "enum") return encodeEnum(field.enum!, item as number);
  return encodeScalar(field.scalar!, item);
}

function encodeScalar(type: ScalarType, value: unknown): JsonValue {
  if (typeof value === "bigint") return value.toString();
  if (type === ScalarType.BYTES) return toBase64(value as Uint8Array);
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return value as JsonValue;
}

function encodeEnum(desc: DescEnum, value: number): JsonValue {
  return desc.value[value]?.name ?? value;
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
}

/** Sets a key that may be `__proto__`, which plain assignment would swallow. */
function define(json: JsonObject, key: string, value: JsonValue): void {
  if (key === "__proto__") Object.defineProperty(json, key, { value, enumerable: true, configurable: true });
  else json[key] = value;
}
