import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "../errors.ts";
import { decodeStatus, encodeStatus } from "../status.ts";
import {
  decodeRequest,
  decodeResponse,
  encodeErrorResponse,
  encodeFrame,
  encodeRequest,
  encodeResponse,
  FrameDecoder,
  headerBytes,
  messageType,
  requestPrefix,
} from "./index.ts";

interface Seen {
  stream: number;
  type: number;
  flags: number;
  payload: string;
}

function decodeInPieces(
  bytes: Buffer,
  cut: () => number,
  reused = false,
): { frames: Seen[]; oversize: number[] } {
  const frames: Seen[] = [];
  const oversize: number[] = [];
  const decoder = new FrameDecoder(
    {
      frame: (stream, type, flags, payload) =>
        void frames.push({ stream, type, flags, payload: payload.toString("hex") }),
      oversize: (stream) => void oversize.push(stream),
    },
    { chunksAreReused: reused, maxPayloadBytes: 1000 },
  );
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + cut());
    decoder.push(bytes.subarray(at, end));
    at = end;
  }
  assert.equal(decoder.atBoundary, true);
  return { frames, oversize };
}

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test("frames come out the same however the bytes are cut", () => {
  const random = generator(7);
  for (let round = 0; round < 200; round++) {
    const sent: Seen[] = [];
    const parts: Buffer[] = [];
    for (let count = 0; count < 8; count++) {
      const payload = Buffer.alloc(Math.floor(random() * 300), count);
      const frame = { stream: Math.floor(random() * 2 ** 32), type: 1 + (count % 3), flags: count % 8 };
      parts.push(encodeFrame(frame.stream, frame.type, frame.flags, payload));
      sent.push({ ...frame, payload: payload.toString("hex") });
    }
    const { frames } = decodeInPieces(
      Buffer.concat(parts),
      () => 1 + Math.floor(random() * 100),
      round % 2 === 0,
    );
    assert.deepEqual(frames, sent);
  }
});

test("a frame that is too long is skipped without being held, and what follows is read", () => {
  const bytes = Buffer.concat([
    encodeFrame(1, messageType.request, 0, Buffer.alloc(1001)),
    encodeFrame(3, messageType.request, 0, Buffer.from("ok")),
  ]);
  const { frames, oversize } = decodeInPieces(bytes, () => 7);
  assert.deepEqual(oversize, [1]);
  assert.deepEqual(
    frames.map((frame) => frame.stream),
    [3],
  );
});

test("a request carries its names, message, deadline and metadata", () => {
  const prefix = requestPrefix("caisson.v1.SystemService", "GetHealth");
  const frame = encodeRequest(5, 1, prefix, Buffer.from("abc"), {
    timeoutMs: 1500,
    metadata: { traceparent: "00-aa-bb-01", "X-Thing": "ü" },
  });
  const request = decodeRequest(frame.subarray(headerBytes));
  assert.equal(request.service, "caisson.v1.SystemService");
  assert.equal(request.method, "GetHealth");
  assert.equal(request.payload?.toString(), "abc");
  assert.equal(request.timeoutNano, 1.5e9);
  assert.deepEqual(
    [...request.metadata],
    [
      ["traceparent", "00-aa-bb-01"],
      ["x-thing", "ü"],
    ],
  );
});

test("an absent message differs from an empty one", () => {
  const prefix = requestPrefix("s", "m");
  assert.equal(
    decodeRequest(encodeRequest(1, 0, prefix, undefined).subarray(headerBytes)).payload,
    undefined,
  );
  assert.equal(
    decodeRequest(encodeRequest(1, 0, prefix, Buffer.alloc(0)).subarray(headerBytes)).payload?.length,
    0,
  );
});

test("a negative deadline stays negative", () => {
  const bytes = Buffer.from([4 << 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
  assert.ok(decodeRequest(bytes).timeoutNano < 0);
});

test("responses carry a message or an error, and an error survives the way", () => {
  const fine = decodeResponse(encodeResponse(1, Buffer.from("yes")).subarray(headerBytes));
  assert.equal(fine.status, undefined);
  assert.equal(fine.payload.toString(), "yes");

  const error = new CaissonError("PATH_LEAVES_ROOT", "`..` leaves the root", { metadata: { rule: "paths" } });
  const sent = decodeResponse(encodeErrorResponse(1, encodeStatus(error, "r-1")).subarray(headerBytes));
  const received = decodeStatus(sent.status!);
  assert.equal(received.code, "PATH_LEAVES_ROOT");
  assert.equal(received.message, "`..` leaves the root");
  assert.deepEqual(received.metadata, { rule: "paths", next_step: error.nextStep, request_id: "r-1" });
});

test("an explicit OK status is no error", () => {
  const status = Buffer.from([1 << 3, 0]);
  const bytes = Buffer.concat([Buffer.from([(1 << 3) | 2, status.length]), status]);
  assert.equal(decodeResponse(bytes).status, undefined);
});

test("no sequence of bytes makes the decoders do anything but decode or refuse", () => {
  const random = generator(11);
  for (let round = 0; round < 20_000; round++) {
    const bytes = Buffer.alloc(Math.floor(random() * 24));
    for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(random() * 256);
    for (const decode of [decodeRequest, decodeResponse]) {
      try {
        decode(bytes);
      } catch (thrown) {
        assert.ok(thrown instanceof CaissonError && thrown.code === "INVALID_INPUT");
      }
    }
  }
});
