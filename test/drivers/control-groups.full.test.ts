// Control groups of the second version, which most hosts have today: in a machine booted for it, since a host has its groups of one
// version.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { within } from "../support/dose.ts";
import { runInMachine } from "../support/whole-machine/boot.ts";

const setting = `
export PATH=/srv/node_modules/.bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
echo "mounted: $(grep -c ' cgroup ' /proc/mounts) of the first, $(grep -c ' cgroup2 ' /proc/mounts) of the second"
`;

describe("control groups of the second version", { timeout: within(600_000) }, () => {
  it("bound memory, processes and processors by the kernel's own counters", async () => {
    const said = await runInMachine(
      `${setting} node test/support/whole-machine/bound.ts 2>&1`,
      within(500_000),
    );
    assert.match(said, /^mounted: 0 of the first, 1 of the second$/m, said);
    const seen = JSON.parse(/^bounded: (.*)$/m.exec(said)?.[1] ?? assert.fail(said));
    assert.deepEqual(
      [seen.by, seen.controls, seen.bounds],
      ["cgroup v2", { memory: true, pids: true, cpu: true }, { memoryBytes: 64 << 20, pids: 36 }],
    );
    assert.deepEqual([seen.signal, seen.oomKills], ["SIGKILL", 1]);
    assert.ok(seen.forks > 20 && seen.forks < 36, String(seen.forks));
  });

  for (const driver of ["bubblewrap", "docker", "runsc"]) {
    it(`hold every limit of ${driver}`, async () => {
      const suite = "node --test --test-reporter=tap test/drivers/limits.test.ts 2>&1";
      const env = `CAISSON_TEST_FULL=1 CAISSON_TEST_DRIVERS=${driver}`;
      const said = await runInMachine(`${setting} ${env} ${suite}`, within(500_000));
      const count = (what: string) => new RegExp(`^# ${what} (\\d+)$`, "m").exec(said)?.[1];
      assert.equal(count("fail"), "0", said);
      assert.ok(Number(count("pass")) >= 20, said);
    });
  }
});
