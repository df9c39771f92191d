type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** A value of the SDK as JSON with the contract's field names; bytes as base64, what is unset left out. */
export function toJson(value: unknown): Json | undefined {
  if (value === undefined || value === null) return undefined;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64");
  if (Array.isArray(value)) return value.map((item) => toJson(item) ?? null);
  if (typeof value === "object") return objectToJson(value);
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "string") return value;
  return String(value);
}

/** Maps whose keys are data, not field names. */
const dataKeys = new Set(["labels", "env", "explained", "data", "limits"]);

function objectToJson(object: object): Json {
  const json: { [key: string]: Json } = {};
  for (const [key, item] of Object.entries(object)) {
    const mapped = dataKeys.has(key) && isPlain(item) ? dataToJson(key, item) : toJson(item);
    if (mapped !== undefined) json[snakeCase(key)] = mapped;
  }
  return json;
}

/** Limits of a sandbox are fields, limits of a server are data: the latter have dotted names. */
function dataToJson(key: string, item: Record<string, unknown>): Json {
  if (key === "limits" && !Object.keys(item).some((name) => name.includes("."))) return objectToJson(item);
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, (value ?? null) as Json]));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Bytes under one of two keys, as the contract's JSON has them: text where they are text. */
export function textOrBytes(name: string, bytes: Uint8Array): Record<string, Json> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const text = buffer.toString("utf8");
  return Buffer.from(text, "utf8").equals(buffer)
    ? { [name]: text }
    : { [`${name}_bytes`]: buffer.toString("base64") };
}

/** JSON text in which no character can act upon a terminal; it means the same to every parser. */
export function stringify(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(
    /[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu,
    (character) =>
      [...Array(character.length).keys()]
        .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
        .join(""),
  );
}
