import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { HostStamp } from "./host-stamp.ts";

test("a program that was replaced is noticed, once, a few seconds later", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "caisson-stamp-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const program = join(directory, "program");
  writeFileSync(program, "one");
  const stamp = new HostStamp(() => [program]);
  assert.equal(await stamp.changed(0), false, "nothing was known before");
  assert.equal(await stamp.changed(10_000), false);
  writeFileSync(program, "another");
  assert.equal(await stamp.changed(10_001), false, "not looked at that often");
  assert.equal(await stamp.changed(20_000), true);
  assert.equal(await stamp.changed(30_000), false);
  rmSync(program);
  assert.equal(await stamp.changed(40_000), true);
});
