// The first message of TLS, which says in the clear which name is meant. Only what the judgement needs is read.

export interface ClientHello {
  /** As it was sent; undefined if there is none. */
  serverName: string | undefined;
  /** Another name may be hidden in an encrypted hello. */
  encrypted: boolean;
}

const handshakeRecord = 22;
const clientHello = 1;
const maxHelloBytes = 64 * 1024;
const serverNameExtension = 0;
const encryptedHelloExtension = 0xfe0d;

/** Reads a hello, which may lie in several records. `more`: it is not whole yet; `bad`: it is none. */
export function readClientHello(bytes: Buffer): ClientHello | "more" | "bad" {
  const parts: Buffer[] = [];
  let have = 0;
  let want = 4;
  for (let at = 0; have < want; ) {
    if (bytes.length - at < 5) return truncatedHeader(bytes, at);
    const length = bytes.readUInt16BE(at + 3);
    if (bytes[at] !== handshakeRecord || bytes[at + 1] !== 3 || length === 0 || length > 16_384 + 256)
      return "bad";
    const part = bytes.subarray(at + 5, at + 5 + length);
    parts.push(part);
    have += part.length;
    if (want === 4 && have >= 4) {
      const head = Buffer.concat(parts);
      if (head[0] !== clientHello) return "bad";
      want = 4 + head.readUIntBE(1, 3);
      if (want > maxHelloBytes) return "bad";
    }
    if (have < want && part.length < length) return "more";
    at += 5 + length;
  }
  try {
    return readBody(new Cursor(Buffer.concat(parts).subarray(4, want)));
  } catch (error) {
    if (error instanceof RangeError) return "bad";
    throw error;
  }
}

function truncatedHeader(bytes: Buffer, at: number): "more" | "bad" {
  if (bytes.length > at && bytes[at] !== handshakeRecord) return "bad";
  return bytes.length > at + 1 && bytes[at + 1] !== 3 ? "bad" : "more";
}

function readBody(body: Cursor): ClientHello {
  const hello: ClientHello = { serverName: undefined, encrypted: false };
  body.take(2 + 32); // version, random
  body.take(body.uint(1)); // session id
  body.take(body.uint(2)); // cipher suites
  body.take(body.uint(1)); // compression
  if (body.left === 0) return hello;
  const extensions = new Cursor(body.take(body.uint(2)));
  const seen = new Set<number>();
  while (extensions.left > 0) {
    const type = extensions.uint(2);
    const data = extensions.take(extensions.uint(2));
    // Two of a kind: whoever reads the other one sees another name.
    if (seen.has(type)) throw new RangeError("an extension comes twice");
    seen.add(type);
    if (type === encryptedHelloExtension) hello.encrypted = true;
    if (type === serverNameExtension) hello.serverName = readServerName(new Cursor(data));
  }
  return hello;
}

function readServerName(data: Cursor): string {
  const names = new Cursor(data.take(data.uint(2)));
  const type = names.uint(1);
  const name = names.take(names.uint(2));
  if (type !== 0 || names.left > 0 || data.left > 0) throw new RangeError("not one host name");
  return name.toString("latin1");
}

class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  uint(length: number): number {
    const value = this.take(length);
    return value.readUIntBE(0, length);
  }

  take(length: number): Buffer {
    if (length > this.left) throw new RangeError("the message ends early");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}
