import { type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { json_text as jsonText } from "../gen/caisson/v1/options_pb.ts";

/** A field under one of its JSON keys. */
export interface JsonKey {
  field: DescField;
  /** For a field that is usually text: whether this key holds the text or the base64 of its bytes. */
  as: "value" | "text" | "bytes";
}

/** A message as JSON sees it. */
export interface JsonShape {
  /** Every key that is known, and nothing inherited. */
  keys: ReadonlyMap<string, JsonKey>;
  fields: readonly JsonField[];
}

export interface JsonField {
  field: DescField;
  /** Set on a bytes field that is usually text: the two keys. */
  text?: { text: string; bytes: string };
}

const shapes = new WeakMap<DescMessage, JsonShape>();

/** The JSON keys of a message: proto field names, and the pair of keys where `(json_text)` says so. */
export function shapeOf(message: DescMessage): JsonShape {
  let shape = shapes.get(message);
  if (shape === undefined) {
    shape = makeShape(message);
    shapes.set(message, shape);
  }
  return shape;
}

function makeShape(message: DescMessage): JsonShape {
  const keys = new Map<string, JsonKey>();
  const fields = message.fields.map((field): JsonField => {
    if (!hasOption(field, jsonText)) {
      keys.set(field.name, { field, as: "value" });
      return { field };
    }
    const { text, bytes } = getOption(field, jsonText);
    keys.set(text, { field, as: "text" });
    keys.set(bytes, { field, as: "bytes" });
    return { field, text: { text, bytes } };
  });
  return { keys, fields };
}

/** Messages whose JSON is not made of their fields: the standard mapping knows them. */
export function isWellKnown(message: DescMessage): boolean {
  return message.typeName.startsWith("google.protobuf.");
}
