import assert from "node:assert/strict";
import { test } from "node:test";
import { MachineSizes, machineMemory, playerMemory } from "./sizes.ts";

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;

test("a machine's size is the usual one, or the smallest step of doubling that holds what is asked for", () => {
  const sizes = new MachineSizes(GiB, 24 * GiB);
  for (const [asked, size] of [
    [1, 1],
    [64 * MiB, 1],
    [GiB, 1],
    [GiB + 1, 2],
    [2 * GiB, 2],
    [3 * GiB, 4],
    [8 * GiB, 8],
  ] as const) {
    assert.equal(sizes.sizeFor(asked), size * GiB, String(asked));
  }
});

test("the last step is what the host can hold, so that steps are few and none is beyond it", () => {
  for (const host of [6, 8, 15.6, 24, 64, 256]) {
    const sizes = new MachineSizes(GiB, host * GiB);
    assert.equal(sizes.sizeFor(sizes.most), sizes.most);
    assert.ok(playerMemory(machineMemory(sizes.most)) <= host * GiB, `${host} GiB`);
    const all = new Set(Array.from({ length: host }, (_, index) => sizes.sizeFor((index + 1) * GiB)));
    assert.ok(all.size <= Math.ceil(Math.log2(host)) + 1, [...all].join(", "));
  }
});

test("a host that cannot even hold the usual machine still has that one", () => {
  const sizes = new MachineSizes(GiB, GiB / 2);
  assert.deepEqual([sizes.most, sizes.sizeFor(4096)], [GiB, GiB]);
});

test("a machine has its kernel's memory on top, in whole megabytes", () => {
  for (const size of [256 * MiB, GiB, 3 * GiB + MiB, 16 * GiB]) {
    const machine = machineMemory(size);
    assert.ok(machine - size >= 256 * MiB && machine - size >= size / 64);
    assert.equal(machine % MiB, 0);
    assert.ok(playerMemory(machine) > 2 * machine);
  }
});
