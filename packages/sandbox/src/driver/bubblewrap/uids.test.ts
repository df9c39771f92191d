import assert from "node:assert/strict";
import { test } from "node:test";
import { UidPool } from "./uids.ts";

test("no two living sandboxes have the same uid, and none is the host's", async () => {
  const pool = new UidPool();
  const reserved = await pool.take();
  const taken = new Set([reserved]);
  for (let i = 0; i < 500; i++) {
    const uid = await pool.take();
    assert.equal(taken.has(uid), false);
    assert.ok(uid >= 0x6c00_0000 && uid < 0x6c10_0000);
    taken.add(uid);
  }
});

test("a uid that was reserved for a sandbox found again is not given out", async () => {
  const probe = new UidPool();
  const next = await probe.take();
  const pool = new UidPool();
  for (let uid = next; uid < next + 100; uid++) pool.reserve(uid);
  for (let i = 0; i < 1000; i++) {
    const uid = await pool.take();
    assert.ok(uid < next || uid >= next + 100);
  }
});
