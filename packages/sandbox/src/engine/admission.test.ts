import assert from "node:assert/strict";
import { availableParallelism, totalmem } from "node:os";
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

test("the sums of memory and of processors are bounded as well", async () => {
  const percent = (part: number) => ({ memoryBytes: (totalmem() * part) / 100, cpuMillis: 0 });
  const processors = (part: number) => ({ memoryBytes: 0, cpuMillis: availableParallelism() * part * 10 });
  for (const [bound, ask] of [
    [{ memoryPercent: 50 }, percent],
    [{ cpuPercent: 50 }, processors],
  ] as const) {
    const admission = new Admission({
      sandboxes: 10,
      memoryPercent: 1000,
      cpuPercent: 1000,
      queue: 3,
      ...bound,
    });
    const first = admission.enter(ask(30));
    assert.equal(first.waiting, undefined);
    const second = admission.enter(ask(30));
    assert.equal(await isSettled(second.waiting), false);
    first.release();
    assert.equal(await isSettled(second.waiting), true);
  }
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
