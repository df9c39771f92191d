import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { after, describe, it } from "node:test";
import { layOut } from "./fixture.ts";
import { buildHarness, harnessWall } from "./harness.ts";
import { judge, manifest } from "./manifest.ts";

/** Any uid that is nobody's: sandboxes need no account. */
const ordinary = { name: "an ordinary user", uid: 59_777, gid: 59_777 };
const self = { name: "this user", uid: process.getuid!(), gid: process.getgid!() };
const accounts = self.uid === 0 ? [{ ...self, name: "root" }, ordinary] : [self];

const harness = buildHarness();
after(() => rmSync(dirname(harness), { recursive: true, force: true }));

for (const account of accounts) {
  const wall = harnessWall(harness, account);
  for (const syscalls of [[], ["debug"], ["nested"]]) {
    const title = syscalls.length > 0 ? `${wall.name} with ${syscalls}` : wall.name;
    describe(title, { timeout: 300_000 }, () => {
      for (const probe of manifest.probes) {
        it(`${probe}: every attempt ends as the manifest says, and the host is unchanged`, async () => {
          await using fixture = await layOut(account);
          const { exitCode, output, complaint } = await wall.run({ fixture, probe, syscalls });
          assert.equal(exitCode, 0, complaint);
          const wrong = judge(probe, output, { syscalls, has: wall.has }).filter(({ holds }) => !holds);
          assert.deepEqual(
            wrong.map(
              ({ case: name, title, got, expected }) => `${name} (${title}): ${got}, not ${expected}`,
            ),
            [],
          );
          assert.deepEqual(fixture.damage(), []);
        });
      }
    });
  }
}

describe("without a wall", () => {
  it("the probes find what they look for, so that their silence means something", async () => {
    await using fixture = await layOut(ordinary);
    const { uid, gid } = self.uid === 0 ? ordinary : self;
    const { stdout } = spawnSync(`${fixture.programs}/kernel-surface`, {
      cwd: "/",
      uid,
      gid,
      encoding: "utf8",
    });
    const wrong = judge("kernel-surface", stdout, { syscalls: [], has: [] }).filter(({ holds }) => !holds);
    const found = wrong.map(({ case: name }) => name);
    for (const name of [
      "kernel.ptrace_attach",
      "status.Seccomp",
      "terminal.tiocsetd",
      "sockets.netlink_uevent",
    ])
      assert.ok(found.includes(name), `${name} is not found on a bare host`);
  });
});
