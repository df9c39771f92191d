import assert from "node:assert/strict";
import { test } from "node:test";
import { AskLimiter } from "./limiter.ts";

const bounds = { pending: 2, perMinute: 4, pendingInAll: 3 };

test("a sandbox may have only so many requests wait, and all together only so many", () => {
  const limiter = new AskLimiter(bounds, () => 0);
  const first = limiter.enter("a");
  assert.ok("leave" in first && "leave" in limiter.enter("a"));
  assert.deepEqual(limiter.enter("a"), { refused: "2 requests of one sandbox wait already", first: true });
  assert.deepEqual(limiter.enter("a"), { refused: "2 requests of one sandbox wait already", first: false });
  assert.ok("leave" in limiter.enter("b"));
  assert.ok("refused" in limiter.enter("b"));
  first.leave();
  first.leave();
  assert.ok("leave" in limiter.enter("b"));
  assert.ok("refused" in limiter.enter("c"));
});

test("a sandbox may ask only so often, and again after a while", () => {
  let now = 0;
  const limiter = new AskLimiter(bounds, () => now);
  const ask = () => {
    const place = limiter.enter("a");
    if ("leave" in place) place.leave();
    return "leave" in place;
  };
  assert.deepEqual([ask(), ask(), ask(), ask(), ask()], [true, true, true, true, false]);
  now = 15_000;
  assert.deepEqual([ask(), ask()], [true, false]);
});
