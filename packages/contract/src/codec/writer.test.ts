import assert from "node:assert/strict";
import { test } from "node:test";
import { Writer } from "./writer.ts";

test("what makes the buffer grow is written into the larger one", () => {
  for (const fill of [0, 65_530, 65_535, 65_536, 131_070]) {
    const writer = new Writer();
    for (let count = 0; count < fill; count++) writer.byte(7);
    const long = "é".repeat(40_000);
    writer.double(1.5);
    writer.raw(Uint8Array.of(1, 2, 3));
    writer.u32BigEndian(0xdeadbeef);
    assert.equal(writer.string(long), 80_000);
    const written = Buffer.concat(writer.finish());
    const double = Buffer.alloc(8);
    double.writeDoubleLE(1.5);
    const expected = Buffer.concat([
      Buffer.from(long),
      Buffer.from("deadbeef010203", "hex"),
      double,
      Buffer.alloc(fill, 7),
    ]);
    assert.ok(written.equals(expected), `after ${fill} bytes`);
  }
});
