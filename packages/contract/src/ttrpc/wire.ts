import { CaissonError } from "../errors.ts";

// The protobuf wire format, as far as ttRPC's two envelopes need it.

export const wireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** Bytes that a length or a small number takes. */
export function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) size++;
  return size;
}

/** Writes a non-negative integer up to 2^53; returns the position after it. */
export function writeVarint(target: Uint8Array, at: number, value: number): number {
  let rest = value;
  while (rest >= 128) {
    target[at++] = (rest % 128) | 128;
    rest = Math.floor(rest / 128);
  }
  target[at++] = rest;
  return at;
}

export function malformed(what: string): CaissonError {
  return new CaissonError("INVALID_INPUT", `malformed message: ${what}`);
}

/** Reads fields one after the other; every length is checked against what is really there. */
export class WireReader {
  readonly bytes: Buffer;
  at = 0;
  field = 0;
  wire = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Moves to the next field; false at the end. */
  next(): boolean {
    if (this.at >= this.bytes.length) return false;
    const tag = this.varint();
    this.field = Math.floor(tag / 8);
    this.wire = tag & 7;
    if (this.field === 0 || tag > 0xffffffff) throw malformed("bad field number");
    return true;
  }

  /** An unsigned varint; what lies beyond 2^53 loses precision. */
  varint(): number {
    let value = 0;
    let factor = 1;
    for (let count = 0; count < 10; count++) {
      if (this.at >= this.bytes.length) throw malformed("it ends inside a number");
      const byte = this.bytes[this.at++]!;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
    throw malformed("a number is too long");
  }

  /** A varint that holds an int64. What is negative stays so, even where precision is lost. */
  signed(): number {
    const value = this.varint();
    return value >= 2 ** 63 ? Math.min(-1, value - 2 ** 64) : value;
  }

  /** A length-delimited field, as a view. */
  view(): Buffer {
    const length = this.varint();
    const end = this.at + length;
    if (end > this.bytes.length) throw malformed("a length goes beyond its end");
    const view = this.bytes.subarray(this.at, end);
    this.at = end;
    return view;
  }

  expect(wire: number): void {
    if (this.wire !== wire) throw malformed(`field ${this.field} has the wrong type`);
  }

  skip(): void {
    if (this.wire === wireType.varint) this.varint();
    else if (this.wire === wireType.bytes) this.view();
    else if (this.wire === wireType.fixed64) this.at += 8;
    else if (this.wire === wireType.fixed32) this.at += 4;
    else throw malformed(`unknown wire type ${this.wire}`);
    if (this.at > this.bytes.length) throw malformed("it ends inside a field");
  }
}
