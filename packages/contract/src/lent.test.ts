import assert from "node:assert/strict";
import { test } from "node:test";
import { borrow, borrowRoom, giveBack } from "./lent.ts";

const bytes = (length: number, value: number) => Buffer.alloc(length, value);

test("what was given back is lent again, and what was not stays as it is", () => {
  const first = borrow(bytes(20_000, 1));
  const held = borrow(bytes(30_000, 2));
  giveBack(first);
  const again = borrow(bytes(40_000, 3));
  assert.equal(again.buffer, first.buffer);
  assert.ok(held.every((byte) => byte === 2) && again.every((byte) => byte === 3));
});

test("only the whole is taken back, and only once", () => {
  const whole = borrow(bytes(50_000, 1));
  giveBack(whole.subarray(10));
  giveBack(whole.subarray(0, 10));
  assert.notEqual(borrow(bytes(50_000, 2)).buffer, whole.buffer);
  giveBack(whole);
  giveBack(whole);
  const [one, other] = [borrow(bytes(50_000, 3)), borrow(bytes(50_000, 4))];
  assert.notEqual(one.buffer, other.buffer);
});

test("room is as long as was asked for, also for a message around a large piece", () => {
  const room = borrowRoom(256 * 1024 + 100);
  assert.equal(room.length, 256 * 1024 + 100);
  giveBack(room);
  assert.equal(borrowRoom(200 * 1024).buffer, room.buffer);
  assert.equal(borrowRoom(10).length, 10);
});

test("small pieces, large ones and what others have allocated are not kept", () => {
  const small = borrow(bytes(10, 1));
  giveBack(small);
  borrow(bytes(10, 2));
  assert.ok(small.every((byte) => byte === 1));
  for (const piece of [borrow(bytes(1 << 20, 1)), Buffer.alloc(64 * 1024)]) {
    giveBack(piece);
    assert.notEqual(borrow(bytes(piece.length, 2)).buffer, piece.buffer);
  }
});
