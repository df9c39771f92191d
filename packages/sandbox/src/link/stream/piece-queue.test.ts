import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../testing/random.ts";
import { PieceQueue } from "./piece-queue.ts";

function taggedBytes(pieces: { tag: number; bytes: Uint8Array }[]): string {
  return pieces.map(({ tag, bytes }) => [...bytes].map((byte) => `${tag}:${byte}`).join(",")).join(",");
}

test("bytes and tags come out as they went in, whatever their sizes", () => {
  for (let seed = 0; seed < 100; seed += 1) {
    const random = new Random(seed);
    const queue = new PieceQueue({ join: true });
    const put: { tag: number; bytes: Uint8Array }[] = [];
    const got: { tag: number; bytes: Uint8Array }[] = [];
    for (let i = 0; i < 200; i += 1) {
      if (random.next() < 0.6) {
        const bytes = random.bytes(random.pick([1, 2, 100, 1023, 1024, 3000]));
        const tag = random.int(1, 2);
        put.push({ tag, bytes });
        queue.push(tag, bytes);
      } else {
        const piece = queue.shift();
        if (piece) got.push({ tag: piece.tag, bytes: piece.bytes.slice() });
      }
    }
    for (let piece = queue.shift(); piece; piece = queue.shift()) got.push(piece);
    assert.ok(taggedBytes(got) === taggedBytes(put), `seed ${seed}`);
    assert.equal(queue.bytes, 0);
    assert.ok(queue.empty);
  }
});

test("neighbours with the same tag are joined", () => {
  const queue = new PieceQueue({ join: true });
  for (let i = 0; i < 1000; i += 1) queue.push(1, Uint8Array.of(i));
  assert.equal(queue.shift()?.bytes.length, 1000);
});

test("without joining, each record stays itself", () => {
  const queue = new PieceQueue({ join: false });
  const records = [[1], [2, 3], [4]].map((bytes) => Uint8Array.from(bytes));
  for (const record of records) queue.push(0, record);
  assert.deepEqual(
    records.map(() => [...queue.shift()!.bytes]),
    [[1], [2, 3], [4]],
  );
});

test("a million pieces of one byte take a few megabytes", () => {
  const before = memory();
  const queue = new PieceQueue({ join: true });
  for (let i = 0; i < 1_048_576; i += 1) queue.push(1 + (i & 1), Uint8Array.of(i));
  assert.equal(queue.bytes, 1_048_576);
  assert.ok(memory() - before < 64 * 1024 * 1024);
});

function memory(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
