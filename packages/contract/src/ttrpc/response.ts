import { headerBytes, messageType, writeHeader } from "./frame.ts";
import { varintSize, WireReader, wireType, writeVarint } from "./wire.ts";

/** ttRPC's `Response`, decoded: either a message or the bytes of a google.rpc.Status that is not OK. */
export interface ResponseEnvelope {
  status: Buffer | undefined;
  payload: Buffer;
}

const empty: Buffer = Buffer.alloc(0);

/** A response frame that carries a message, in one buffer. An absent status is OK. */
export function encodeResponse(stream: number, payload: Uint8Array): Buffer {
  return encodeField(stream, 2, payload);
}

/** A response frame that carries an error, as the bytes of a google.rpc.Status. */
export function encodeErrorResponse(stream: number, status: Uint8Array): Buffer {
  return encodeField(stream, 1, status);
}

function encodeField(stream: number, field: number, content: Uint8Array): Buffer {
  const length = content.length === 0 ? 0 : 1 + varintSize(content.length) + content.length;
  const frame = Buffer.allocUnsafe(headerBytes + length);
  writeHeader(frame, length, stream, messageType.response, 0);
  if (length > 0) {
    frame[headerBytes] = (field << 3) | wireType.bytes;
    frame.set(content, writeVarint(frame, headerBytes + 1, content.length));
  }
  return frame;
}

/** Decodes the payload of a response frame; message and status stay views. */
export function decodeResponse(bytes: Buffer): ResponseEnvelope {
  const reader = new WireReader(bytes);
  let status: Buffer | undefined;
  let payload = empty;
  while (reader.next()) {
    if (reader.field === 1) {
      reader.expect(wireType.bytes);
      status = reader.view();
    } else if (reader.field === 2) {
      reader.expect(wireType.bytes);
      payload = reader.view();
    } else {
      reader.skip();
    }
  }
  return { status: status !== undefined && isOk(status) ? undefined : status, payload };
}

/** Servers may send an explicit status whose code is 0. */
function isOk(status: Buffer): boolean {
  const reader = new WireReader(status);
  while (reader.next()) {
    if (reader.field === 1 && reader.wire === wireType.varint) return reader.varint() === 0;
    reader.skip();
  }
  return true;
}
