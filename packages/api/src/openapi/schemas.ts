import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { shapeOf } from "@caisson/contract/json";
import { commentOf, commentOfValue } from "./comments.ts";

export type Json = { [key: string]: unknown };

/** Collects the schemas that operations refer to. */
export class Schemas {
  readonly all: Record<string, Json> = {};

  /** A reference to a message's schema, which is added with everything it contains. */
  message(desc: DescMessage): Json {
    if (desc.typeName === "google.protobuf.Timestamp") return { type: "string", format: "date-time" };
    if (desc.typeName === "google.protobuf.Struct") return { type: "object" };
    if (!Object.hasOwn(this.all, desc.name)) {
      this.all[desc.name] = {};
      this.all[desc.name] = this.#messageSchema(desc);
    }
    return { $ref: `#/components/schemas/${desc.name}` };
  }

  /** The same without fields that are bound elsewhere in the request. */
  messageWithout(desc: DescMessage, names: ReadonlySet<string>): Json {
    return names.size === 0 ? this.message(desc) : this.#messageSchema(desc, names);
  }

  field(field: DescField): Json {
    const description = commentOf(field);
    const schema = this.#value(field);
    // Beside a reference a description stands on its own in OpenAPI 3.1.
    return description === "" ? schema : { ...schema, description };
  }

  #messageSchema(desc: DescMessage, without: ReadonlySet<string> = new Set()): Json {
    const properties: Record<string, Json> = {};
    for (const { field, text } of shapeOf(desc).fields) {
      if (without.has(field.name)) continue;
      const description = describe(field);
      if (text === undefined) properties[field.name] = { ...this.field(field), ...description };
      else {
        properties[text.text] = { type: "string", ...describe(field, "Where it is valid UTF-8.") };
        properties[text.bytes] = {
          type: "string",
          contentEncoding: "base64",
          ...describe(field, `Instead of \`${text.text}\` where it is not valid UTF-8.`),
        };
      }
    }
    const description = commentOf(desc);
    return {
      type: "object",
      ...(description === "" ? {} : { description }),
      properties,
      additionalProperties: false,
    };
  }

  #value(field: DescField): Json {
    if (field.fieldKind === "list") return { type: "array", items: this.#single(field) };
    if (field.fieldKind === "map") return { type: "object", additionalProperties: this.#single(field) };
    return this.#single(field);
  }

  #single(field: DescField): Json {
    if (field.message !== undefined) return this.message(field.message);
    if (field.enum !== undefined) return this.#enum(field.enum);
    return scalar(field.scalar!);
  }

  #enum(desc: DescEnum): Json {
    this.all[desc.name] ??= {
      type: "string",
      enum: desc.values.map(({ name }) => name),
      description: enumDescription(desc),
    };
    return { $ref: `#/components/schemas/${desc.name}` };
  }
}

function describe(field: DescField, more = ""): Json {
  const parts = [commentOf(field), more];
  if (field.oneof !== undefined) {
    const others = field.oneof.fields.map(({ name }) => `\`${name}\``).join(", ");
    parts.push(`One of ${others} is set.`);
  }
  const description = parts.filter((part) => part !== "").join(" ");
  return description === "" ? {} : { description };
}

function enumDescription(desc: DescEnum): string {
  const values = desc.values.map(({ name }, index) => {
    const comment = commentOfValue(desc, index);
    return comment === "" ? `\`${name}\`` : `\`${name}\`: ${comment}`;
  });
  return [commentOf(desc), values.join("; ")].filter((part) => part !== "").join(" ");
}

function scalar(type: ScalarType): Json {
  switch (type) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.DOUBLE:
      return { type: "number", format: "double" };
    case ScalarType.INT32:
      return { type: "integer", format: "int32" };
    case ScalarType.UINT32:
      return { type: "integer", minimum: 0, maximum: 4_294_967_295 };
    case ScalarType.UINT64:
      return { type: "string", format: "uint64", pattern: "^[0-9]+$" };
    default:
      return { type: "string", format: "int64", pattern: "^-?[0-9]+$" };
  }
}
