import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../../link/testing/random.ts";
import { MemoryBudget, RecentOutput } from "./memory.ts";
import { endOf, type Tag } from "./piece.ts";

const sizes = [1, 7, 300, 1024, 5000, 16_384, 70_000, 262_144, 400_000];

test("recent outputs that share their memory never mix, whatever is pushed and dropped when", () => {
  for (let seed = 0; seed < 30; seed += 1) {
    const random = new Random(seed);
    const budget = new MemoryBudget(1 << 30);
    // What each should hold: the bytes of every position from `start` on, and their tags.
    const outputs = [1, 2, 3].map(() => ({
      recent: new RecentOutput(budget, 0),
      bytes: Buffer.alloc(0),
      tags: "",
    }));
    for (let step = 0; step < 60; step += 1) {
      const output = random.pick(outputs);
      const dropped = output.recent.end - output.bytes.length;
      if (random.next() < 0.6) {
        const lent = Buffer.alloc(random.pick(sizes), random.int(0, 255));
        const tag = random.int(1, 2) as Tag;
        output.recent.push(tag, lent);
        output.bytes = Buffer.concat([output.bytes, lent]);
        output.tags += String(tag).repeat(lent.length);
        lent.fill(0xee);
      } else if (output.recent.count > 0) {
        const gone = endOf(output.recent.oldest()!) - dropped;
        output.recent.drop();
        output.bytes = output.bytes.subarray(gone);
        output.tags = output.tags.slice(gone);
      }
      for (const { recent, bytes, tags } of outputs) {
        const pieces = recent.from(recent.start, Number.MAX_SAFE_INTEGER);
        assert.ok(
          Buffer.concat(pieces.map((piece) => piece.bytes)).equals(bytes),
          `seed ${seed}, step ${step}`,
        );
        const seen = pieces.map(({ tag, bytes: of }) => String(tag).repeat(of.length)).join("");
        assert.ok(seen === tags, `seed ${seed}, step ${step}`);
      }
    }
    for (const { recent } of outputs) recent.clear();
    assert.equal(budget.used, 0);
  }
});
