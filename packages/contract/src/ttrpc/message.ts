import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { encodeParts, type Writer } from "../codec/index.ts";
import { CaissonError } from "../errors.ts";
import { rules } from "../rules.ts";
import { messageType } from "./frame.ts";
import { encodeTail, type RequestInit } from "./request.ts";
import { wireType } from "./wire.ts";

// Whole frames around a message, written in one go: the buffers to write, in order. Large bytes of
// the message are among them as they are.

/** A data frame: one message of a stream. */
export function dataFrame<D extends DescMessage>(
  stream: number,
  flags: number,
  desc: D,
  message: MessageInitShape<D>,
): Uint8Array[] {
  return encodeParts(desc, message, (writer) => writeHeader(writer, stream, messageType.data, flags));
}

/** A response frame: the answer to a unary call. */
export function responseFrame<D extends DescMessage>(
  stream: number,
  desc: D,
  message: MessageInitShape<D>,
): Uint8Array[] {
  return encodeParts(desc, message, (writer) => {
    writeField(writer, 2);
    writeHeader(writer, stream, messageType.response, 0);
  });
}

/** A request frame; `prefix` is the method's `requestPrefix`. */
export function requestFrame<D extends DescMessage>(
  stream: number,
  flags: number,
  prefix: Uint8Array,
  desc: D,
  message: MessageInitShape<D>,
  init: RequestInit = {},
): Uint8Array[] {
  return encodeParts(desc, message, (writer) => {
    writeField(writer, 3);
    writer.raw(encodeTail(init));
    writer.raw(prefix);
    writeHeader(writer, stream, messageType.request, flags);
  });
}

/** Makes what was written the value of a field. */
function writeField(writer: Writer, number: number): void {
  writer.varint(writer.length);
  writer.byte(number * 8 + wireType.bytes);
}

function writeHeader(writer: Writer, stream: number, type: number, flags: number): void {
  const { length } = writer;
  if (length > rules.sizes.message_bytes) {
    throw new CaissonError(
      "TOO_LARGE",
      `a message of ${length} bytes exceeds ${rules.sizes.message_bytes}; what is larger streams`,
    );
  }
  writer.byte(flags);
  writer.byte(type);
  writer.u32BigEndian(stream);
  writer.u32BigEndian(length);
}
