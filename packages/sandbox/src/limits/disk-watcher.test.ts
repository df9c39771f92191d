import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { type DiskUse, DiskWatcher } from "./disk-watcher.ts";

function setUp() {
  const free: DiskUse = { bytes: 1000, files: 1000 };
  const used: DiskUse = { bytes: 0, files: 0 };
  const heard: DiskUse[] = [];
  let measured = 0;
  let now = 0;
  const watcher = new DiskWatcher(
    () => ({ ...free }),
    () => now,
  );
  const unwatch = watcher.watch({
    bound: { bytes: 100, files: 10 },
    isBusy: () => false,
    async measure() {
      measured++;
      return { ...used };
    },
    exceeded: (now) => heard.push(now),
  });
  const write = async (bytes: number, files = 0, bySandbox = true) => {
    free.bytes -= bytes;
    free.files -= files;
    if (bySandbox) {
      used.bytes += bytes;
      used.files += files;
    }
    now += 1000;
    watcher.look();
    await turn();
  };
  return { write, heard, measured: () => measured, [Symbol.dispose]: unwatch };
}

test("a layer is measured only when it can have outgrown its bound", async () => {
  using setup = setUp();
  await setup.write(50);
  await setup.write(49);
  assert.equal(setup.measured(), 0);
  await setup.write(60, 0, false);
  assert.deepEqual([setup.measured(), setup.heard], [1, []]);
  // What others took is known now: one byte is left.
  await setup.write(1);
  assert.deepEqual([setup.measured(), setup.heard], [2, []]);
  await setup.write(1);
  assert.deepEqual(setup.heard, [{ bytes: 101, files: 0 }]);
});

test("files without content count as well", async () => {
  using setup = setUp();
  await setup.write(0, 11);
  assert.deepEqual(setup.heard, [{ bytes: 0, files: 11 }]);
});

test("one that stays above its bound is told of again only when it has grown", async () => {
  using setup = setUp();
  await setup.write(150);
  await setup.write(0);
  await setup.write(-20);
  assert.equal(setup.heard.length, 1);
  await setup.write(30);
  assert.deepEqual(
    setup.heard.map(({ bytes }) => bytes),
    [150, 160],
  );
});
