const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Bytes that a command wrote. */
export class Output {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** As UTF-8; what is not shows as U+FFFD. */
  get text(): string {
    return decoder.decode(this.bytes);
  }

  /** Parsed as JSON. */
  json(): unknown {
    return JSON.parse(this.text);
  }

  toString(): string {
    return this.text;
  }
}

export function toBytes(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? encoder.encode(data) : data;
}

export function concat(pieces: Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
