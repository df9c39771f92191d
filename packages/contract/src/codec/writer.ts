/** From this size on bytes are handed on as they are instead of being copied. */
const externalBytes = 16 * 1024;
const initialBytes = 64 * 1024;
/** A buffer that has grown beyond this is not kept for the next message. */
const keptBytes = 1024 * 1024;
/** Strings up to this length are looked at character by character, which is faster than a call into the runtime. */
const shortString = 32;

/**
 * Writes a message from its end to its beginning, so that the length of what is nested is known when
 * it has to be written and every byte is written once.
 */
export class Writer {
  #buffer = Buffer.allocUnsafeSlow(initialBytes);
  #at = this.#buffer.length;
  /** What lies behind the buffer's content, last part first. */
  #behind: Uint8Array[] = [];
  #behindBytes = 0;

  /** Bytes written so far. */
  get length(): number {
    return this.#behindBytes + this.#buffer.length - this.#at;
  }

  /** Hands out what was written, in order, and begins anew. */
  finish(): Uint8Array[] {
    const parts = this.#behind;
    parts.push(this.#content());
    this.reset();
    return parts.reverse();
  }

  /** Forgets what was written. */
  reset(): void {
    this.#behind = [];
    this.#behindBytes = 0;
    if (this.#buffer.length > keptBytes) this.#buffer = Buffer.allocUnsafeSlow(initialBytes);
    this.#at = this.#buffer.length;
  }

  byte(value: number): void {
    if (this.#at === 0) this.#grow(1);
    this.#buffer[--this.#at] = value;
  }

  /** A non-negative integer up to 2^53. */
  varint(value: number): void {
    if (value < 128) {
      this.byte(value);
      return;
    }
    let size = 2;
    for (let rest = value; rest >= 16_384; rest /= 128) size++;
    let at = this.#take(size);
    let rest = value;
    while (rest >= 128) {
      this.#buffer[at++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    this.#buffer[at] = rest;
  }

  /** Any 64-bit integer, as two's complement. */
  varint64(value: bigint): void {
    if (value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER)) {
      this.varint(Number(value));
      return;
    }
    const bytes: number[] = [];
    let rest = BigInt.asUintN(64, value);
    while (rest >= 128n) {
      bytes.push(Number(rest & 127n) | 128);
      rest >>= 7n;
    }
    bytes.push(Number(rest));
    this.raw(Uint8Array.from(bytes));
  }

  double(value: number): void {
    const at = this.#take(8);
    this.#buffer.writeDoubleLE(value, at);
  }

  u32BigEndian(value: number): void {
    const at = this.#take(4);
    this.#buffer.writeUInt32BE(value, at);
  }

  /** Bytes as they are. Large ones are not copied and must not be changed afterwards. */
  raw(bytes: Uint8Array): void {
    if (bytes.length < externalBytes) {
      const at = this.#take(bytes.length);
      this.#buffer.set(bytes, at);
      return;
    }
    if (this.#at < this.#buffer.length) {
      const content = this.#content();
      this.#behind.push(content);
      this.#behindBytes += content.length;
      this.#at = this.#buffer.length;
    }
    this.#behind.push(bytes);
    this.#behindBytes += bytes.length;
  }

  /** A string in UTF-8; returns its length in bytes. */
  string(text: string): number {
    if (text.length <= shortString && this.#ascii(text)) return text.length;
    const size = Buffer.byteLength(text);
    const at = this.#take(size);
    this.#buffer.write(text, at, "utf8");
    return size;
  }

  #ascii(text: string): boolean {
    const at = this.#take(text.length);
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code > 127) {
        this.#at += text.length;
        return false;
      }
      this.#buffer[at + index] = code;
    }
    return true;
  }

  /** Makes room in front of what is there. The buffer may be another one afterwards. */
  #take(size: number): number {
    if (this.#at < size) this.#grow(size);
    this.#at -= size;
    return this.#at;
  }

  #grow(size: number): void {
    const used = this.#buffer.length - this.#at;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#buffer.length * 2, (used + size) * 2));
    this.#buffer.copy(larger, larger.length - used, this.#at);
    this.#at = larger.length - used;
    this.#buffer = larger;
  }

  #content(): Uint8Array {
    const content = Buffer.allocUnsafe(this.#buffer.length - this.#at);
    this.#buffer.copy(content, 0, this.#at);
    return content;
  }
}
