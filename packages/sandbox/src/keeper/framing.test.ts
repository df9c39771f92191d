import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, Unframer } from "./framing.ts";

test("messages come out whole, however they were cut", () => {
  const bytes = Buffer.concat([
    frame(Buffer.from("one")),
    frame(Buffer.alloc(0)),
    frame(Buffer.from("three")),
  ]);
  for (let size = 1; size <= bytes.length; size++) {
    const unframer = new Unframer();
    const messages: string[] = [];
    for (let start = 0; start < bytes.length; start += size) {
      for (const message of unframer.push(bytes.subarray(start, start + size))) {
        messages.push(Buffer.from(message).toString());
      }
    }
    assert.deepEqual(messages, ["one", "", "three"]);
  }
});

test("a length that no keeper would announce is refused before anything is kept", () => {
  assert.throws(() => new Unframer().push(Buffer.from([0xff, 0xff, 0xff, 0x7f])), /2147483647 bytes/);
});
