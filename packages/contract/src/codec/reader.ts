import { isUtf8 } from "node:buffer";
import { malformed } from "../ttrpc/wire.ts";

/** Strings up to this length are looked at byte by byte, which is faster than a call into the runtime. */
const shortString = 24;

/** Reads the protobuf wire format; every length is checked against what is really there. */
export class Reader {
  readonly bytes: Buffer;
  at: number;
  end: number;

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.at = 0;
    this.end = bytes.length;
  }

  byte(): number {
    if (this.at >= this.end) throw malformed("it ends inside a value");
    return this.bytes[this.at++]!;
  }

  /** A length or tag: at most 32 bits. */
  uint32(): number {
    let byte = this.byte();
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let shift = 7; shift < 35; shift += 7) {
      byte = this.byte();
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) {
        if (value > 0xffffffff) break;
        return value;
      }
    }
    throw malformed("a length or tag is too large");
  }

  /** A varint of up to 64 bits. */
  varint64(): bigint {
    let low = 0;
    let factor = 1;
    // Seven bytes fit a number exactly.
    for (let count = 0; count < 7; count++) {
      const byte = this.byte();
      low += (byte & 127) * factor;
      if (byte < 128) return BigInt(low);
      factor *= 128;
    }
    let value = BigInt(low);
    for (let shift = 49n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    throw malformed("a number is too long");
  }

  /** The low 32 bits of a varint, as the standard has it for shorter types. */
  varint32(): number {
    const first = this.byte();
    if (first < 128) return first;
    this.at--;
    return Number(BigInt.asUintN(32, this.varint64()));
  }

  double(): number {
    if (this.end - this.at < 8) throw malformed("it ends inside a value");
    const value = this.bytes.readDoubleLE(this.at);
    this.at += 8;
    return value;
  }

  /** The end of a length-delimited value that begins after its length. */
  limit(): number {
    const length = this.uint32();
    const end = this.at + length;
    if (end > this.end) throw malformed("a length goes beyond its end");
    return end;
  }

  /** A view of bytes. */
  view(): Uint8Array {
    const end = this.limit();
    const view = new Uint8Array(this.bytes.buffer, this.bytes.byteOffset + this.at, end - this.at);
    this.at = end;
    return view;
  }

  string(): string {
    const end = this.limit();
    const begin = this.at;
    this.at = end;
    if (end - begin <= shortString) {
      let text = "";
      let at = begin;
      for (; at < end && this.bytes[at]! < 128; at++) text += String.fromCharCode(this.bytes[at]!);
      if (at === end) return text;
    }
    const view = this.bytes.subarray(begin, end);
    if (!isUtf8(view)) throw malformed("a string is not valid UTF-8");
    return view.toString("utf8");
  }

  skip(wire: number): void {
    if (wire === 0) this.varint64();
    else if (wire === 2) this.at = this.limit();
    else if (wire === 1) this.at += 8;
    else if (wire === 5) this.at += 4;
    else throw malformed(`unknown wire type ${wire}`);
    if (this.at > this.end) throw malformed("it ends inside a field");
  }
}
