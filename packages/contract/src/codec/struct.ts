import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { malformed, wireType } from "../ttrpc/wire.ts";
import type { Reader } from "./reader.ts";
import type { Writer } from "./writer.ts";

// google.protobuf.Struct, which a message holds as plain JSON: Struct{fields=1}, its entries {key=1, value=2},
// and Value{null=1, number=2, string=3, bool=4, struct=5, list=6} with ListValue{values=1}.

const maxDepth = 64;
const kind = { null: 1, number: 2, string: 3, bool: 4, struct: 5, list: 6 } as const;
const tag = (number: number, wire: number) => number * 8 + wire;

/** Writes the fields of a Struct, without a length in front. */
export function writeStruct(writer: Writer, json: JsonObject): void {
  for (const [key, value] of Object.entries(json).reverse()) {
    if (value === undefined) continue;
    const end = writer.length;
    writeNested(writer, tag(2, wireType.bytes), () => writeValue(writer, value));
    writer.varint(writer.string(key));
    writer.varint(tag(1, wireType.bytes));
    writer.varint(writer.length - end);
    writer.varint(tag(1, wireType.bytes));
  }
}

function writeValue(writer: Writer, value: JsonValue): void {
  if (typeof value === "string") {
    writer.varint(writer.string(value));
    writer.byte(tag(kind.string, wireType.bytes));
  } else if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new Error("a number in JSON is finite");
    writer.double(value);
    writer.byte(tag(kind.number, wireType.fixed64));
  } else if (typeof value === "boolean") {
    writer.byte(value ? 1 : 0);
    writer.byte(tag(kind.bool, wireType.varint));
  } else if (value === null) {
    writer.byte(0);
    writer.byte(tag(kind.null, wireType.varint));
  } else if (Array.isArray(value)) {
    writeNested(writer, tag(kind.list, wireType.bytes), () => writeList(writer, value));
  } else {
    writeNested(writer, tag(kind.struct, wireType.bytes), () => writeStruct(writer, value));
  }
}

function writeList(writer: Writer, list: readonly JsonValue[]): void {
  for (let index = list.length - 1; index >= 0; index--) {
    writeNested(writer, tag(1, wireType.bytes), () => writeValue(writer, list[index]!));
  }
}

function writeNested(writer: Writer, tagNumber: number, write: () => void): void {
  const end = writer.length;
  write();
  writer.varint(writer.length - end);
  writer.varint(tagNumber);
}

/** Reads the fields of a Struct up to the reader's end. */
export function readStruct(reader: Reader, json: JsonObject, depth = 0): JsonObject {
  if (depth > maxDepth) throw malformed("it is nested too deeply");
  readFields(reader, (entry) => {
    if (entry !== tag(1, wireType.bytes)) return false;
    const outer = reader.end;
    reader.end = reader.limit();
    let key = "";
    let value: JsonValue = null;
    readFields(reader, (field) => {
      if (field === tag(1, wireType.bytes)) key = reader.string();
      else if (field === tag(2, wireType.bytes)) value = nested(reader, () => readValue(reader, depth));
      else return false;
      return true;
    });
    reader.end = outer;
    Object.defineProperty(json, key, { value, enumerable: true, configurable: true, writable: true });
    return true;
  });
  return json;
}

function readValue(reader: Reader, depth: number): JsonValue {
  let value: JsonValue = null;
  readFields(reader, (field) => {
    if (field === tag(kind.null, wireType.varint)) {
      reader.varint32();
      value = null;
    } else if (field === tag(kind.number, wireType.fixed64)) value = reader.double();
    else if (field === tag(kind.string, wireType.bytes)) value = reader.string();
    else if (field === tag(kind.bool, wireType.varint)) value = reader.varint64() !== 0n;
    else if (field === tag(kind.struct, wireType.bytes))
      value = nested(reader, () => readStruct(reader, {}, depth + 1));
    else if (field === tag(kind.list, wireType.bytes))
      value = nested(reader, () => readList(reader, depth + 1));
    else return false;
    return true;
  });
  return value;
}

function readList(reader: Reader, depth: number): JsonValue[] {
  if (depth > maxDepth) throw malformed("it is nested too deeply");
  const list: JsonValue[] = [];
  readFields(reader, (field) => {
    if (field !== tag(1, wireType.bytes)) return false;
    list.push(nested(reader, () => readValue(reader, depth)));
    return true;
  });
  return list;
}

function nested<T>(reader: Reader, read: () => T): T {
  const outer = reader.end;
  reader.end = reader.limit();
  const value = read();
  reader.end = outer;
  return value;
}

/** Calls `read` with each tag up to the end; what it does not know is skipped. */
function readFields(reader: Reader, read: (tag: number) => boolean): void {
  while (reader.at < reader.end) {
    const field = reader.uint32();
    if (field < 8) throw malformed("bad field number");
    if (!read(field)) reader.skip(field & 7);
  }
}
