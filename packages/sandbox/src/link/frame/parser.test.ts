import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../testing/random.ts";
import { LinkViolation } from "../violation.ts";
import {
  decodeAck,
  encodeAck,
  encodeFrame,
  encodeHeader,
  frameType,
  headerBytes,
  maxFrameBytes,
  maxMessageBytes,
} from "./frame.ts";
import { FrameParser } from "./parser.ts";

/** Everything a parser finds, DATA put together again, as text to compare. */
class Found {
  readonly frames: string[] = [];
  #data: Buffer[] = [];

  data(stream: number, tag: number, piece: Uint8Array, left: number): void {
    this.#data.push(Buffer.from(piece));
    if (left > 0) return;
    this.frames.push(`data ${stream} ${tag} ${Buffer.concat(this.#data).toString("hex")}`);
    this.#data = [];
  }

  message(type: number, stream: number, payload: Uint8Array): void {
    this.frames.push(`${type} ${stream} ${Buffer.from(payload).toString("hex")}`);
  }
}

function randomFrame(random: Random): Buffer {
  const stream = random.int(1, 0xffff_ffff);
  switch (random.int(1, 5)) {
    case 1:
      return encodeFrame(frameType.control, 0, random.bytes(random.int(0, 300)));
    case 2: {
      const payload = random.bytes(random.int(0, 2000));
      return Buffer.concat([encodeHeader(frameType.data, stream, random.int(0, 2), payload.length), payload]);
    }
    case 3:
      return encodeAck(stream, random.int(0, Number.MAX_SAFE_INTEGER));
    case 4:
      return encodeFrame(frameType.end, stream, new Uint8Array(0));
    default:
      return encodeFrame(frameType.reset, stream, random.bytes(random.int(0, 50)));
  }
}

function pushInPieces(parser: FrameParser, bytes: Buffer, random: Random, largest: number): void {
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + random.int(1, largest));
    parser.push(bytes.subarray(at, end));
    at = end;
  }
}

test("frames are the same however the bytes are split", () => {
  for (let seed = 0; seed < 200; seed += 1) {
    const random = new Random(seed);
    const bytes = Buffer.concat(Array.from({ length: random.int(1, 30) }, () => randomFrame(random)));
    const whole = new Found();
    new FrameParser(whole).push(bytes);
    const split = new Found();
    pushInPieces(new FrameParser(split), bytes, random, random.pick([1, 3, 13, 400]));
    assert.deepEqual(split.frames, whole.frames, `seed ${seed}`);
    assert.ok(whole.frames.length > 0);
  }
});

test("mutated bytes give frames or a violation, nothing else", () => {
  let violations = 0;
  for (let seed = 0; seed < 500; seed += 1) {
    const random = new Random(seed);
    const bytes = Buffer.concat(Array.from({ length: random.int(1, 10) }, () => randomFrame(random)));
    for (let i = random.int(1, 4); i > 0; i -= 1) bytes[random.int(0, bytes.length - 1)] = random.int(0, 255);
    const parser = new FrameParser({
      data: (_stream, tag, piece, left) => {
        assert.ok(tag <= 2 && piece.length + left <= maxFrameBytes);
      },
      message: (type, stream, payload) => {
        assert.ok(payload.length <= maxMessageBytes && (stream === 0) === (type === frameType.control));
      },
    });
    try {
      pushInPieces(parser, bytes, random, 500);
    } catch (error) {
      assert.ok(error instanceof LinkViolation, `seed ${seed}: ${error}`);
      violations += 1;
    }
  }
  assert.ok(violations > 50);
});

test("random bytes give a violation", () => {
  for (let seed = 0; seed < 200; seed += 1) {
    const bytes = Buffer.from(new Random(seed).bytes(4000));
    assert.throws(() => new FrameParser(new Found()).push(bytes), LinkViolation, `seed ${seed}`);
  }
});

test("every broken header is refused before its payload is looked at", () => {
  const header = (type: number, stream: number, tag: number, length: number, reserved = 0) => {
    const bytes = encodeHeader(type, stream, tag, length);
    bytes[10] = reserved;
    return bytes;
  };
  const broken = {
    "a DATA payload that is too long": header(frameType.data, 1, 1, maxFrameBytes + 1),
    "a length of four gigabytes": header(frameType.data, 1, 1, 0xffff_ffff),
    "a CONTROL payload that is too long": header(frameType.control, 0, 0, maxMessageBytes + 1),
    "a RESET payload that is too long": header(frameType.reset, 1, 0, maxMessageBytes + 1),
    "an unknown type": header(6, 1, 0, 0),
    "type zero": header(0, 1, 0, 0),
    "an unknown tag": header(frameType.data, 1, 3, 1),
    "a tag on CONTROL": header(frameType.control, 0, 1, 1),
    "a reserved byte": header(frameType.data, 1, 1, 1, 1),
    "CONTROL on a stream": header(frameType.control, 1, 0, 1),
    "DATA on stream zero": header(frameType.data, 0, 1, 1),
    "a short ACK": header(frameType.ack, 1, 0, 7),
    "a long ACK": header(frameType.ack, 1, 0, 9),
    "an END with a payload": header(frameType.end, 1, 0, 1),
  };
  for (const [what, bytes] of Object.entries(broken)) {
    assert.equal(bytes.length, headerBytes);
    assert.throws(() => new FrameParser(new Found()).push(bytes), LinkViolation, what);
  }
});

test("the pieces of DATA are views of what was received", () => {
  const payload = Buffer.alloc(1000, 7);
  const chunk = Buffer.concat([encodeHeader(frameType.data, 9, 2, payload.length), payload]);
  let seen: Uint8Array | undefined;
  const parser = new FrameParser({
    data: (_stream, _tag, piece) => {
      seen = piece;
    },
    message: () => assert.fail(),
  });
  parser.push(chunk);
  assert.equal(seen?.buffer, chunk.buffer);
});

test("positions keep every bit, and those that no number holds are seen", () => {
  for (const position of [0, 1, 0xffff_ffff, 0x1_0000_0000, Number.MAX_SAFE_INTEGER]) {
    assert.equal(decodeAck(encodeAck(1, position).subarray(headerBytes)), position);
  }
  assert.ok(Number.isNaN(decodeAck(new Uint8Array(8).fill(255))));
});
