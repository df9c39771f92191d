// The wall by itself, without daemon and keeper.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { layOut } from "./fixture.ts";
import { buildHarness, harnessWall } from "./harness.ts";
import { judge } from "./manifest.ts";
import { probe } from "./suite.ts";

/** Any uid that is nobody's: sandboxes need no account. */
const ordinary = { name: "an ordinary user", uid: 59_777, gid: 59_777 };
const self = { name: "this user", uid: process.getuid!(), gid: process.getgid!() };
const accounts = self.uid === 0 ? [{ ...self, name: "root" }, ordinary] : [self];

const harness = buildHarness();
after(() => rmSync(dirname(harness), { recursive: true, force: true }));

for (const account of accounts) probe(harnessWall(harness, account), account);

describe("without a wall", () => {
  it("the probes find what they look for, so that their silence means something", async () => {
    const { uid, gid } = accounts.at(-1)!;
    await using fixture = await layOut({ uid, gid });
    const program = join(fixture.workspace, "programs/kernel-surface");
    const { stdout } = spawnSync(program, { cwd: "/", uid, gid, encoding: "utf8" });
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
