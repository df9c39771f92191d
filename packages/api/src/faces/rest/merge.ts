import {
  create,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";

type Fields = Record<string, unknown>;

/** One message made of a stream's: bytes and lists are joined, messages merged, and the last scalar counts. */
export function mergeMessages<D extends DescMessage>(
  desc: D,
  messages: readonly MessageInitShape<D>[],
): MessageShape<D> {
  const merged: Fields = {};
  for (const field of desc.fields) {
    const values = (messages as readonly Fields[])
      .map((message) => message[field.localName])
      .filter((value) => value !== undefined);
    if (values.length > 0) merged[field.localName] = mergeValues(field, values);
  }
  return create(desc, merged as MessageInitShape<D>);
}

function mergeValues(field: DescField, values: readonly unknown[]): unknown {
  if (field.fieldKind === "list") return values.flat(1);
  if (field.fieldKind === "map") return Object.assign({}, ...(values as object[]));
  if (field.fieldKind === "message")
    return values.length === 1 ? values[0] : mergeMessages(field.message, values as never);
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.BYTES)
    return Buffer.concat(values as Uint8Array[]);
  return values.findLast(Boolean) ?? values[values.length - 1];
}
