import { isUtf8 } from "node:buffer";
import { headerBytes, messageType, writeHeader } from "./frame.ts";
import { malformed, varintSize, WireReader, wireType, writeVarint } from "./wire.ts";

/** ttRPC's `Request`, decoded. */
export interface RequestEnvelope {
  service: string;
  method: string;
  /** Undefined when the caller sent no message, as on a stream whose messages follow as data. */
  payload: Buffer | undefined;
  /** 0: no deadline. Negative: it has passed. */
  timeoutNano: number;
  metadata: ReadonlyMap<string, string>;
}

export interface RequestInit {
  /** Milliseconds until the caller gives up. Default: none. */
  timeoutMs?: number | undefined;
  metadata?: Record<string, string> | undefined;
}

/** Keys and values in one request's metadata. */
const maxMetadata = 64;
const noMetadata: ReadonlyMap<string, string> = new Map();

/** A method's name as the fixed beginning of each of its requests. Make it once per method. */
export function requestPrefix(service: string, method: string): Buffer {
  const serviceBytes = Buffer.from(service);
  const methodBytes = Buffer.from(method);
  return Buffer.concat([lengthDelimited(1, serviceBytes), lengthDelimited(2, methodBytes)]);
}

/**
 * A request frame in one buffer. Without `payload` it opens a stream whose messages follow as data
 * frames; an empty message is an empty payload, not an absent one.
 */
export function encodeRequest(
  stream: number,
  flags: number,
  prefix: Buffer,
  payload: Uint8Array | undefined,
  init: RequestInit = {},
): Buffer {
  const tail = encodeTail(init);
  const payloadBytes = payload === undefined ? 0 : 1 + varintSize(payload.length) + payload.length;
  const length = prefix.length + payloadBytes + tail.length;
  const frame = Buffer.allocUnsafe(headerBytes + length);
  writeHeader(frame, length, stream, messageType.request, flags);
  frame.set(prefix, headerBytes);
  let at = headerBytes + prefix.length;
  if (payload !== undefined) {
    frame[at++] = (3 << 3) | wireType.bytes;
    at = writeVarint(frame, at, payload.length);
    frame.set(payload, at);
    at += payload.length;
  }
  frame.set(tail, at);
  return frame;
}

const noTail = Buffer.alloc(0);

/** Deadline and metadata. */
export function encodeTail(init: RequestInit): Buffer {
  if (init.timeoutMs === undefined && init.metadata === undefined) return noTail;
  const parts: Buffer[] = [];
  if (init.timeoutMs !== undefined && init.timeoutMs > 0) {
    const nano = Math.min(Math.round(init.timeoutMs * 1e6), Number.MAX_SAFE_INTEGER);
    const bytes = Buffer.allocUnsafe(1 + varintSize(nano));
    bytes[0] = (4 << 3) | wireType.varint;
    writeVarint(bytes, 1, nano);
    parts.push(bytes);
  }
  for (const [key, value] of Object.entries(init.metadata ?? {})) {
    parts.push(
      lengthDelimited(
        5,
        Buffer.concat([lengthDelimited(1, Buffer.from(key)), lengthDelimited(2, Buffer.from(value))]),
      ),
    );
  }
  return Buffer.concat(parts);
}

function lengthDelimited(field: number, content: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(1 + varintSize(content.length) + content.length);
  bytes[0] = (field << 3) | wireType.bytes;
  content.copy(bytes, writeVarint(bytes, 1, content.length));
  return bytes;
}

/** Decodes the payload of a request frame. The message itself stays a view. */
export function decodeRequest(bytes: Buffer): RequestEnvelope {
  const reader = new WireReader(bytes);
  const request: RequestEnvelope = {
    service: "",
    method: "",
    payload: undefined,
    timeoutNano: 0,
    metadata: noMetadata,
  };
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        reader.expect(wireType.bytes);
        request.service = reader.view().toString("latin1");
        break;
      case 2:
        reader.expect(wireType.bytes);
        request.method = reader.view().toString("latin1");
        break;
      case 3:
        reader.expect(wireType.bytes);
        request.payload = reader.view();
        break;
      case 4:
        reader.expect(wireType.varint);
        request.timeoutNano = reader.signed();
        break;
      case 5:
        reader.expect(wireType.bytes);
        request.metadata = withEntry(request.metadata, reader.view());
        break;
      default:
        reader.skip();
    }
  }
  return request;
}

function withEntry(metadata: ReadonlyMap<string, string>, bytes: Buffer): ReadonlyMap<string, string> {
  const reader = new WireReader(bytes);
  let key = "";
  let value = "";
  while (reader.next()) {
    if (reader.field === 1 && reader.wire === wireType.bytes) key = text(reader.view());
    else if (reader.field === 2 && reader.wire === wireType.bytes) value = text(reader.view());
    else reader.skip();
  }
  if (metadata.size >= maxMetadata) throw malformed("too much metadata");
  const all = metadata === noMetadata ? new Map<string, string>() : (metadata as Map<string, string>);
  return all.set(key.toLowerCase(), value);
}

function text(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw malformed("metadata is not UTF-8");
  return bytes.toString("utf8");
}
