import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { malformed, wireType } from "../ttrpc/wire.ts";
import { Reader } from "./reader.ts";
import { RecentMessages } from "./recent.ts";
import { readStruct } from "./struct.ts";

type Fields = Record<string, unknown>;
type ReadValue = (reader: Reader, depth: number, before: unknown) => unknown;
type ReadField = (reader: Reader, wire: number, message: Fields, depth: number) => void;

interface Plan {
  /** A message with every field at its default. */
  make(): Fields;
  read(reader: Reader, message: Fields, depth: number): void;
  /** The last ones that were read inside of others, if equal ones are one and the same. */
  recent?: RecentMessages;
}

const plans = new WeakMap<DescMessage, Plan>();
/** Nesting that no message of the contract comes near. */
const maxDepth = 64;

/**
 * Reads a message; throws INVALID_INPUT for anything malformed. The same as protobuf-es', and many times
 * as fast, but unknown fields are dropped. Bytes are views of the input.
 */
export function decodeMessage<D extends DescMessage>(desc: D, bytes: Uint8Array): MessageShape<D> {
  const plan = planOf(desc);
  const message = plan.make();
  plan.read(new Reader(bytes), message, 0);
  return message as unknown as MessageShape<D>;
}

/** Lets equal bytes of such a message inside of others be read once: the same message comes again, frozen. Not for messages
 * that hold bytes, which are views of the input. */
export function shareDecoded(desc: DescMessage): void {
  planOf(desc).recent ??= new RecentMessages();
}

function planOf(desc: DescMessage): Plan {
  const known = plans.get(desc);
  if (known !== undefined) return known;
  const readers: (ReadField | undefined)[] = [];
  const plan: Plan = {
    make: maker(desc),
    read(reader, message, depth) {
      if (depth > maxDepth) throw malformed("it is nested too deeply");
      while (reader.at < reader.end) {
        const tag = reader.uint32();
        const wire = tag & 7;
        const number = tag >>> 3;
        if (number === 0) throw malformed("bad field number");
        const read = number < readers.length ? readers[number] : undefined;
        if (read === undefined) reader.skip(wire);
        else read(reader, wire, message, depth);
      }
    },
  };
  plans.set(desc, plan);
  for (const field of desc.fields) readers[field.number] = fieldReader(field);
  return plan;
}

/** Copies a template, and gives each copy containers of its own. */
function maker(desc: DescMessage): () => Fields {
  const template = create(desc) as unknown as Fields;
  const lists = desc.fields.filter((field) => field.fieldKind === "list").map((field) => field.localName);
  const maps = desc.fields.filter((field) => field.fieldKind === "map").map((field) => field.localName);
  const oneofs = desc.oneofs.map((oneof) => oneof.localName).filter((name) => name in template);
  if (lists.length + maps.length + oneofs.length === 0) return () => ({ ...template });
  return () => {
    const message = { ...template };
    for (const name of lists) message[name] = [];
    for (const name of maps) message[name] = {};
    for (const name of oneofs) message[name] = { case: undefined };
    return message;
  };
}

function fieldReader(field: DescField): ReadField {
  const [wire, read] = valueReader(field);
  const { localName } = field;
  const check = (actual: number) => {
    if (actual !== wire) throw malformed(`field ${field.name} has the wrong type`);
  };
  if (field.fieldKind === "list") return listReader(localName, wire, read, check);
  if (field.fieldKind === "map") return mapReader(field, wire, read);
  if (field.oneof !== undefined) {
    const oneof = field.oneof.localName;
    return (reader, actual, message, depth) => {
      check(actual);
      const chosen = message[oneof] as { case?: string; value?: unknown };
      const before = chosen.case === localName ? chosen.value : undefined;
      message[oneof] = { case: localName, value: read(reader, depth, before) };
    };
  }
  return (reader, actual, message, depth) => {
    check(actual);
    message[localName] = read(reader, depth, message[localName]);
  };
}

function listReader(name: string, wire: number, read: ReadValue, check: (wire: number) => void): ReadField {
  return (reader, actual, message, depth) => {
    const list = message[name] as unknown[];
    if (actual !== wireType.bytes || wire === wireType.bytes) {
      check(actual);
      list.push(read(reader, depth, undefined));
      return;
    }
    const outer = reader.end;
    reader.end = reader.limit();
    while (reader.at < reader.end) list.push(read(reader, depth, undefined));
    reader.end = outer;
  };
}

function mapReader(field: DescField & { fieldKind: "map" }, valueWire: number, read: ReadValue): ReadField {
  const zero = () => (field.message === undefined ? zeroOf(field) : planOf(field.message).make());
  return (reader, actual, message, depth) => {
    if (actual !== wireType.bytes) throw malformed(`field ${field.name} has the wrong type`);
    const outer = reader.end;
    reader.end = reader.limit();
    let key = "";
    let value: unknown;
    while (reader.at < reader.end) {
      const tag = reader.uint32();
      if (tag === 8 + wireType.bytes) key = reader.string();
      else if (tag === 16 + valueWire) value = read(reader, depth, value);
      else if (tag < 8) throw malformed("bad field number");
      else reader.skip(tag & 7);
    }
    reader.end = outer;
    // Assigning it would change the map's prototype instead of its content.
    if (key === "__proto__") throw malformed(`field ${field.name} may not have the key __proto__`);
    (message[field.localName] as Fields)[key] = value ?? zero();
  };
}

function zeroOf(field: DescField & { fieldKind: "map" }): unknown {
  if (field.scalar === ScalarType.STRING) return "";
  if (field.scalar === ScalarType.UINT64 || field.scalar === ScalarType.INT64) return 0n;
  if (field.scalar === ScalarType.BOOL) return false;
  return field.scalar === ScalarType.BYTES ? new Uint8Array(0) : 0;
}

function valueReader(field: DescField): [wire: number, read: ReadValue] {
  if (field.message !== undefined) return [wireType.bytes, messageReader(field.message)];
  if (field.enum !== undefined) return [wireType.varint, (reader) => reader.varint32() | 0];
  switch (field.scalar) {
    case ScalarType.STRING:
      return [wireType.bytes, (reader) => reader.string()];
    case ScalarType.BYTES:
      return [wireType.bytes, (reader) => reader.view()];
    case ScalarType.BOOL:
      return [wireType.varint, (reader) => reader.varint64() !== 0n];
    case ScalarType.UINT32:
      return [wireType.varint, (reader) => reader.varint32()];
    case ScalarType.INT32:
      return [wireType.varint, (reader) => reader.varint32() | 0];
    case ScalarType.UINT64:
      return [wireType.varint, (reader) => reader.varint64()];
    case ScalarType.INT64:
      return [wireType.varint, (reader) => BigInt.asIntN(64, reader.varint64())];
    case ScalarType.DOUBLE:
      return [wireType.fixed64, (reader) => reader.double()];
    default:
      throw new Error(`${field.name}: no scalar type ${field.scalar} in the contract so far`);
  }
}

function messageReader(desc: DescMessage): ReadValue {
  // Inside a message a Struct is plain JSON.
  if (desc.typeName === "google.protobuf.Struct") {
    return (reader, depth, before) => {
      const outer = reader.end;
      reader.end = reader.limit();
      const json = readStruct(reader, (before as JsonObject | undefined) ?? {}, depth);
      reader.end = outer;
      return json;
    };
  }
  const plan = planOf(desc);
  return (reader, depth, before) => {
    const outer = reader.end;
    reader.end = reader.limit();
    const start = reader.at;
    const recent = before === undefined ? plan.recent : undefined;
    let message = recent?.take<Fields>(reader);
    if (message === undefined) {
      message = (before as Fields | undefined) ?? plan.make();
      plan.read(reader, message, depth + 1);
      recent?.keep(reader.bytes.subarray(start, reader.end), message);
    }
    reader.end = outer;
    return message;
  };
}
