import assert from "node:assert/strict";
import { test } from "node:test";
import { Admission } from "./admission.ts";

const settings = { sandboxes: 2, memoryPercent: 1000, cpuPercent: 100_000, queue: 3 };
const small = { memoryBytes: 1, cpuMillis: 0 };

async function isSettled(promise: Promise<void> | undefined): Promise<boolean> {
  return Promise.race([
    promise?.then(() => true),
    new Promise<false>((resolve) => setImmediate(() => resolve(false))),
  ]) as Promise<boolean>;
}

test("places are given in the order they were asked for, and a place is given back once", async () => {
  const admission = new Admission(settings);
  const [one, two] = [admission.enter(small), admission.enter(small)];
  const [three, four] = [admission.enter(small), admission.enter(small)];
  assert.equal(one.waiting, undefined);
  assert.equal(await isSettled(three.waiting), false);
  one.release();
  one.release();
  assert.equal(await isSettled(three.waiting), true);
  assert.equal(await isSettled(four.waiting), false);
  two.release();
  assert.equal(await isSettled(four.waiting), true);
});

test("a wait that is given up lets the next one in", async () => {
  const admission = new Admission(settings);
  const [one] = [admission.enter(small), admission.enter(small)];
  const gone = admission.enter(small);
  const next = admission.enter(small);
  gone.release();
  one.release();
  assert.equal(await isSettled(next.waiting), true);
});

test("a full queue and a sandbox that never fits are refused", () => {
  const admission = new Admission(settings);
  for (let n = 0; n < 5; n++) admission.enter(small);
  assert.throws(() => admission.enter(small), /are waiting/);
  assert.throws(
    () => new Admission(settings).enter({ memoryBytes: 1e18, cpuMillis: 0 }),
    /beyond what this host admits/,
  );
});
