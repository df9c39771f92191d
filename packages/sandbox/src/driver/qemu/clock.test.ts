import assert from "node:assert/strict";
import { test } from "node:test";
import { readTscKhz } from "./clock.ts";

const now = "cpu MHz\t\t: 799.941\n";

test("the clock's speed is the processor's own, not what it runs at now, wherever that is told", async () => {
  const of = (files: Record<string, string>) =>
    readTscKhz(async (path) => {
      const found = Object.keys(files).find((name) => path.endsWith(name));
      if (found === undefined) throw new Error("ENOENT");
      return files[found]!;
    });
  assert.equal(await of({ tsc_freq_khz: "2399998\n", base_frequency: "2400000\n" }), 2_399_998);
  assert.equal(await of({ base_frequency: "2400000\n", cpuinfo: now }), 2_400_000);
  assert.equal(await of({ cpuinfo: `model name\t: Some(R) CPU @ 2.30GHz\n${now}` }), 2_300_000);
  assert.equal(await of({ cpuinfo: now }), 799_941);
  assert.equal(await of({}), 2_000_000);
});
