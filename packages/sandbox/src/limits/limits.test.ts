import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CaissonError, MechanismState } from "@caisson/contract";
import { findCgroups, readMounts } from "./cgroup/find.ts";
import { CgroupsV2 } from "./cgroup/v2.ts";
import { type LimitValues, mergeLimits, planLimits, requestedLimits } from "./index.ts";

const none: LimitValues = requestedLimits(undefined);
const without = { cgroups: undefined, reason: "the test has none" } as const;
const stateOf = (limits: LimitValues, requested: LimitValues, name: string) =>
  planLimits(limits, requested, without).find((mechanism) => mechanism.name === name);

test("a limit that was asked for and cannot be enforced is an error that names it", () => {
  const requested = requestedLimits({ cpuMillis: 500 });
  assert.throws(
    () => planLimits(mergeLimits(requested, none), requested, without),
    (error) =>
      error instanceof CaissonError &&
      error.code === "NOT_ENFORCEABLE" &&
      error.metadata.mechanism === "limit.cpu",
  );
});

test("a profile's limit that cannot be enforced is reported as such", () => {
  const limits = { ...none, cpuMillis: 500, memoryBytes: 1e9, pids: 10 };
  assert.equal(stateOf(limits, none, "limit.cpu")?.state, MechanismState.NOT_ENFORCED);
  assert.equal(stateOf(limits, none, "limit.memory")?.by, "watcher");
  assert.equal(stateOf(limits, none, "limit.pids")?.by, "rlimit");
  assert.equal(stateOf(limits, none, "limit.timeout")?.state, MechanismState.OFF);
});

test("limits that no program survives are refused", () => {
  for (const limits of [{ memoryBytes: 1000n }, { pids: 1 }, { openFiles: 2 }, { cpuMillis: 1 }]) {
    assert.throws(() => requestedLimits(limits), /must be at least/);
  }
  assert.throws(() => requestedLimits({ memoryBytes: 2n ** 63n }), /too large/);
});

test("mounts of control groups are read from mountinfo, escapes included", () => {
  const found = readMounts(
    [
      "30 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro",
      "31 30 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
      "32 30 0:28 / /sys/fs/cgroup/cpu\\040x rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct",
      "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
      "",
    ].join("\n"),
  );
  assert.equal(found.v1.get("memory"), "/sys/fs/cgroup/memory");
  assert.equal(found.v1.get("cpuacct"), "/sys/fs/cgroup/cpu x");
  assert.equal(found.v2, "/sys/fs/cgroup/unified");
});

test("in the unified hierarchy, limits are written below the highest delegated group", async () => {
  const mount = mkdtempSync(join(tmpdir(), "caisson-cgroup-"));
  try {
    const own = "/user.slice/daemon.scope";
    mkdirSync(join(mount, own), { recursive: true });
    const control = (path: string) => writeFileSync(join(mount, path, "cgroup.subtree_control"), "");
    const procs = (path: string) => writeFileSync(join(mount, path, "cgroup.procs"), "");
    for (const path of ["/user.slice", own]) procs(path);
    // A plain file keeps what was written last, where the kernel would keep all of them.
    for (const path of ["/user.slice", "/user.slice/caisson", "/user.slice/caisson/test"]) {
      mkdirSync(join(mount, path), { recursive: true });
      control(path);
    }
    const cgroups = new CgroupsV2(join(mount, "/user.slice/caisson/test"), ["memory", "pids", "cpu"]);
    const group = cgroups.make("sb_x");
    const file = (name: string) => join(mount, "/user.slice/caisson/test/sb_x", name);
    for (const name of ["memory.max", "memory.swap.max", "pids.max", "cpu.max"])
      writeFileSync(file(name), "");
    group.configure({ ...none, memoryBytes: 1_000_000, cpuMillis: 1500 });
    assert.equal(readFileSync(file("memory.max"), "utf8"), "1000000");
    assert.equal(readFileSync(file("pids.max"), "utf8"), "max");
    assert.equal(readFileSync(file("cpu.max"), "utf8"), "150000 100000");
    writeFileSync(file("memory.events"), "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\n");
    assert.equal(group.oomKills(), 2);
    assert.deepEqual(cgroups.list(), ["sb_x"]);
  } finally {
    rmSync(mount, { recursive: true });
  }
});

test("control groups of this machine can be made, bounded and removed", async (context) => {
  const found = findCgroups("test");
  if (!found.cgroups) return context.skip(found.reason);
  const group = found.cgroups.make("sb_0000000000000000");
  group.configure({ ...none, memoryBytes: 64 * 1024 * 1024, pids: 10, cpuMillis: 500 });
  assert.equal(group.oomKills(), 0);
  assert.equal(group.usage().pids, 0);
  assert.ok(found.cgroups.list().includes("sb_0000000000000000"));
  await group.remove();
  await group.remove();
  assert.deepEqual(found.cgroups.list(), []);
  found.cgroups.close();
});
