/** A keeper's replies are small; anything longer is not a keeper. */
const maxMessageBytes = 4 << 20;

/** A message behind its length, as the keeper reads it. */
export function frame(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(4 + message.length);
  bytes.writeUInt32LE(message.length, 0);
  bytes.set(message, 4);
  return bytes;
}

/** Cuts what arrives into messages. */
export class Unframer {
  #kept: Buffer = Buffer.alloc(0);

  /** The messages that are whole now. Throws when the other side cannot be a keeper. */
  push(chunk: Buffer): Uint8Array[] {
    let rest = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    const messages: Uint8Array[] = [];
    while (rest.length >= 4) {
      const length = rest.readUInt32LE(0);
      if (length > maxMessageBytes) throw new Error(`the keeper announced a message of ${length} bytes`);
      if (rest.length < 4 + length) break;
      messages.push(rest.subarray(4, 4 + length));
      rest = rest.subarray(4 + length);
    }
    this.#kept = rest;
    return messages;
  }
}
