import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import { LinkViolation } from "../violation.ts";
import { Outbound } from "./outbound.ts";

function takeAll(outbound: Outbound, max = 64): number[] {
  const bytes: number[] = [];
  for (let piece = outbound.take(max); piece; piece = outbound.take(max)) bytes.push(...piece);
  return bytes;
}

test("no more is sent than the window allows", () => {
  const outbound = new Outbound(1, 4);
  void outbound.write(Uint8Array.of(1, 2, 3));
  void outbound.write(Uint8Array.of(4, 5, 6));
  assert.deepEqual(takeAll(outbound), [1, 2, 3, 4]);
  outbound.ack(2);
  assert.deepEqual(takeAll(outbound), [5, 6]);
});

test("a write resolves when all of it is taken, and not before", async () => {
  const outbound = new Outbound(1, 100);
  let done = false;
  const written = outbound.write(Uint8Array.of(1, 2, 3)).then(() => {
    done = true;
  });
  takeAll(outbound);
  outbound.ack(2);
  await Promise.resolve();
  assert.equal(done, false);
  outbound.ack(3);
  await written;
});

test("the end is sent once, after everything else", () => {
  const outbound = new Outbound(1, 2);
  void outbound.write(Uint8Array.of(1, 2, 3));
  outbound.end();
  takeAll(outbound);
  assert.equal(outbound.takeEnd(), false);
  outbound.ack(2);
  takeAll(outbound);
  assert.equal(outbound.takeEnd(), true);
  assert.equal(outbound.takeEnd(), false);
});

test("after a cut, everything that was not taken is sent again, and the end too", () => {
  const outbound = new Outbound(1, 100);
  for (const byte of [1, 2, 3, 4, 5]) void outbound.write(Uint8Array.of(byte, byte));
  outbound.end();
  takeAll(outbound, 3);
  assert.ok(outbound.takeEnd());
  outbound.ack(2);
  outbound.rewind(5, 100);
  assert.deepEqual(takeAll(outbound, 3), [3, 4, 4, 5, 5]);
  assert.ok(outbound.takeEnd());
});

test("what an earlier daemon sent is counted", () => {
  const outbound = new Outbound(1, 100);
  void outbound.write(Uint8Array.of(7));
  outbound.begin(1000);
  outbound.rewind(1000, 100);
  assert.deepEqual(takeAll(outbound), [7]);
  outbound.ack(1001);
});

test("an acknowledgement of what was never sent, or of less than before, is a violation", () => {
  const outbound = new Outbound(1, 100);
  void outbound.write(Uint8Array.of(1, 2, 3));
  outbound.take(2);
  assert.throws(() => outbound.ack(3), LinkViolation);
  outbound.ack(2);
  assert.throws(() => outbound.ack(1), LinkViolation);
  assert.throws(() => outbound.ack(Number.NaN), LinkViolation);
  assert.throws(() => outbound.rewind(3, 100), LinkViolation);
});

test("a failure reaches everyone who waits, and later writes", async () => {
  const outbound = new Outbound(1, 1);
  const waiting = outbound.write(Uint8Array.of(1, 2));
  const room = outbound.room();
  outbound.fail(new CaissonError("PROCESS_ENDED", "over"));
  await assert.rejects(waiting, { code: "PROCESS_ENDED" });
  await room;
  await assert.rejects(outbound.write(Uint8Array.of(3)), { code: "PROCESS_ENDED" });
  assert.equal(outbound.take(10), undefined);
});
