import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { writePart } from "./writer.ts";

/** A reader that takes what it is given only when it is let. */
function reader(): { response: never; take: () => void } {
  let take = () => {};
  const response = new Writable({
    highWaterMark: 1,
    write(_chunk, _encoding, done) {
      take = done;
    },
  });
  return { response: response as never, take: () => take() };
}

test("a write waits for its reader", async () => {
  const { response, take } = reader();
  let written = false;
  const writing = writePart(response, "ab").then(() => {
    written = true;
  });
  await new Promise(setImmediate);
  assert.equal(written, false);
  take();
  await writing;
});

test("a reader that takes nothing is cut off", async () => {
  const { response } = reader();
  await assert.rejects(writePart(response, "ab", 20), { code: "CANCELLED" });
  assert.equal((response as Writable).destroyed, true);
  await assert.rejects(writePart(response, "more"), { code: "CANCELLED" });
});
