import { CaissonError } from "@caisson/contract/errors";
import { rules } from "@caisson/contract/rules";

/** Flags and length before each message of a stream. */
const headBytes = 5;
const endFlag = 2;

export interface Envelope {
  /** The last one: JSON that tells how the call ended. */
  end: boolean;
  payload: Uint8Array;
}

export function envelope(payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(headBytes + payload.length);
  new DataView(bytes.buffer).setUint32(1, payload.length);
  bytes.set(payload, headBytes);
  return bytes;
}

/** A request's messages as a body: as they come in Node, gathered first in a browser, which cannot stream upwards. */
export async function streamingBody(messages: AsyncIterable<Uint8Array>): Promise<RequestInit> {
  if (typeof process === "undefined") {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    for await (const message of messages) parts.push(envelope(message));
    return { body: new Blob(parts) };
  }
  const iterator = messages[Symbol.asyncIterator]();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(envelope(value));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
  return { body, duplex: "half" } as RequestInit;
}

/** Cuts a response's bytes into envelopes; holds at most one message. */
export class Envelopes {
  #held: Uint8Array = new Uint8Array(0);

  *push(chunk: Uint8Array): Generator<Envelope> {
    let bytes = this.#held.length === 0 ? chunk : join(this.#held, chunk);
    this.#held = new Uint8Array(0);
    while (bytes.length >= headBytes) {
      const flags = bytes[0]!;
      const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
      if (length > rules.sizes.message_bytes || (flags & ~endFlag) !== 0) {
        throw new CaissonError("INTERNAL", "the server's answer could not be read");
      }
      if (bytes.length < headBytes + length) break;
      yield { end: flags === endFlag, payload: bytes.subarray(headBytes, headBytes + length) };
      bytes = bytes.subarray(headBytes + length);
    }
    this.#held = bytes;
  }
}

function join(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
