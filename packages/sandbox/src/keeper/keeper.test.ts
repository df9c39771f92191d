import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { test } from "node:test";
import { CgroupV2 } from "../limits/cgroup/v2.ts";
import { findCgroups } from "../limits/index.ts";
import { connectSocket } from "./connect.ts";
import { Keeper, type LaunchInit, launchedProcess } from "./keeper.ts";
import { accounts, Bench, eventually, processesWith } from "./testing.ts";

/** Any uid of nobody's, for sandboxes of root's. */
const sandboxUid = 0x6c00_0042;

/** A launch of a shell script in a process namespace of its own. */
function inNamespace(bench: Bench, isRoot: boolean, script: string): LaunchInit {
  const argv = ["/usr/bin/bwrap", "--unshare-user", "--unshare-pid", "--as-pid-1"];
  argv.push("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib");
  argv.push(
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--",
    "/bin/sh",
    "-c",
    script,
  );
  return launchOf(bench, isRoot, argv);
}

function launchOf(bench: Bench, isRoot: boolean, argv: string[]): LaunchInit {
  const sandbox = randomUUID();
  const dir = `${bench.dir}/${sandbox}`;
  mkdirSync(dir, { mode: 0o700 });
  bench.give(dir);
  return {
    sandbox,
    argv,
    env: ["MARK=yes"],
    socket: `${dir}/link.sock`,
    ...(isRoot ? { uid: sandboxUid, gid: sandboxUid } : {}),
    guest: bench.guest,
    log: `${dir}/launch.log`,
  };
}

for (const account of accounts()) {
  const isRoot = account.uid === 0;
  const as = `as ${account.name}`;

  test(`the keeper says what it is, ${as}`, async () => {
    await using bench = new Bench(account);
    const identity = await bench.keeper.identity();
    assert.equal(identity.uid, account.uid);
    assert.equal(identity.canChangeUid, isRoot);
    assert.equal(identity.userNamespaces, true, identity.userNamespacesReason);
    assert.match(identity.build, /^\d/);
  });

  test(`a launched program holds nothing but its streams and the socket, ${as}`, async () => {
    await using bench = new Bench(account);
    const script =
      "ls /proc/self/fd | tr '\\n' ' '; env | sort | tr '\\n' ' '; id -u; id -G; umask; pwd; exec sleep 100";
    const init = launchOf(bench, isRoot, ["/bin/sh", "-c", script]);
    const { pid } = await bench.keeper.launch(init);
    await eventually("all was said", () => readFileSync(`/proc/${pid}/comm`, "utf8") === "sleep\n");
    const [launched, first, groups, umask, cwd] = readFileSync(init.log, "utf8").split("\n");
    const uid = isRoot ? sandboxUid : account.uid;
    assert.match(launched as string, new RegExp(`^launched ${pid} [0-9]+$`));
    // 4 is the directory that ls itself reads.
    assert.match(first as string, new RegExp(`^0 1 2 3 4 MARK=yes PWD=/ (_=[^ ]+ )?${uid}$`));
    assert.deepEqual([groups, umask, cwd], [String(uid), "0022", "/"]);
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    assert.match(status, new RegExp(`^Uid:\\s+${uid}\\s+${uid}\\s+${uid}\\s+${uid}$`, "m"));
    assert.match(status, /^SigIgn:\s+0+$/m);
    assert.match(status, /^SigBlk:\s+0+$/m);
    assert.equal(
      readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[5],
      String(pid),
      "a session of its own",
    );
    assert.equal(statSync(init.socket).mode & 0o777, 0o600);
    const socket = await connectSocket(init.socket);
    socket.destroy();
    await bench.keeper.kill(init.sandbox);
  });

  test(`a program that cannot be started is an error and leaves no socket, ${as}`, async () => {
    await using bench = new Bench(account);
    const init = launchOf(bench, isRoot, ["/nowhere/bwrap"]);
    await assert.rejects(bench.keeper.launch(init), { code: "SANDBOX_FAILED", message: /No such file/ });
    assert.equal(existsSync(init.socket), false);
    const cgroup = { ...launchOf(bench, isRoot, ["/bin/true"]), cgroups: ["/nowhere/cgroup.procs"] };
    await assert.rejects(bench.keeper.launch(cgroup), {
      code: "SANDBOX_FAILED",
      message: /joining a cgroup/,
    });
  });

  test(`a program's own end is reported with its code, ${as}`, async () => {
    await using bench = new Bench(account);
    const init = inNamespace(bench, isRoot, "exit 73");
    const kept = await bench.keeper.launch(init);
    const ended = await kept.ended;
    assert.deepEqual([ended.sandbox, ended.code, ended.signal], [init.sandbox, 73, 0]);
    await bench.keeper.kill(init.sandbox);
  });

  test(`kill ends everything inside, however it has forked away, ${as}`, async () => {
    await using bench = new Bench(account);
    const mark = `caisson-mark-${randomUUID()}`;
    const runaway = `setsid sh -c 'trap "" TERM HUP; (sleep 1000 ${mark}) & exec tail -f /dev/null ${mark}' &`;
    const init = inNamespace(bench, isRoot, `${runaway} ${runaway} exec tail -f /dev/null --pid=1 ${mark}`);
    const kept = await bench.keeper.launch(init);
    await eventually("all have started", () => processesWith(mark).length >= 4);
    await bench.keeper.kill(init.sandbox);
    assert.deepEqual(processesWith(mark), []);
    await kept.ended;
  });

  test(`a sandbox is killed at any moment of its start, ${as}`, async () => {
    await using bench = new Bench(account);
    const mark = `caisson-mark-${randomUUID()}`;
    for (let round = 0; round < 20; round++) {
      const init = inNamespace(bench, isRoot, `exec tail -f /dev/null ${mark}`);
      const kept = await bench.keeper.launch(init);
      if (round % 2 === 1) await new Promise((resolve) => setTimeout(resolve, round / 4));
      await bench.keeper.kill(init.sandbox);
      await kept.ended;
    }
    assert.deepEqual(processesWith(mark), []);
  });

  test(`when the outer process is killed, nothing inside is left, ${as}`, async () => {
    await using bench = new Bench(account);
    const mark = `caisson-mark-${randomUUID()}`;
    const init = inNamespace(bench, isRoot, `tail -f /dev/null ${mark} & exec tail -f /dev/null ${mark}`);
    const kept = await bench.keeper.launch(init);
    await eventually("it runs", () => processesWith(mark).length >= 3);
    process.kill(kept.pid, "SIGKILL");
    const ended = await kept.ended;
    assert.equal(ended.signal, 9);
    assert.deepEqual(processesWith(mark), []);
  });

  test(`sandboxes outlive their keeper, and another one adopts them, ${as}`, async () => {
    await using bench = new Bench(account);
    const mark = `caisson-mark-${randomUUID()}`;
    const init = inNamespace(bench, isRoot, `exec tail -f /dev/null ${mark}`);
    const first = bench.newKeeper();
    const { pid, startTime } = await first.launch(init);
    await eventually("it runs", () => processesWith(mark).length >= 2);
    await first.close();
    // A process that becomes another program has no words for a moment.
    await eventually("it lives on", () => processesWith(mark).length >= 2);
    assert.deepEqual(await launchedProcess(init.log), { pid, startTime });

    assert.equal(await bench.keeper.adopt(init.sandbox, { pid, startTime: startTime + 1n }), undefined);
    const kept = await bench.keeper.adopt(init.sandbox, { pid, startTime });
    assert.ok(kept);
    await bench.keeper.kill(init.sandbox);
    assert.equal((await kept.ended).code, -1);
    assert.deepEqual(processesWith(mark), []);
    assert.equal(await bench.keeper.adopt(init.sandbox, { pid, startTime }), undefined);
  });

  test(`a keeper that is killed is replaced, and knows its sandboxes, ${as}`, async () => {
    await using bench = new Bench(account);
    const mark = `caisson-mark-${randomUUID()}`;
    const [one, two] = [0, 1].map(() => inNamespace(bench, isRoot, `exec tail -f /dev/null ${mark}`));
    const first = await bench.keeper.launch(one as LaunchInit);
    const second = await bench.keeper.launch(two as LaunchInit);
    const parent = Number(readFileSync(`/proc/${first.pid}/stat`, "utf8").split(" ")[3]);
    process.kill(parent, "SIGKILL");
    process.kill(second.pid, "SIGKILL");
    await second.ended;
    await bench.keeper.kill((one as LaunchInit).sandbox);
    await first.ended;
    assert.deepEqual(processesWith(mark), []);
  });

  test(`a launch that its keeper dies in leaves nothing behind, ${as}`, async () => {
    await using bench = new Bench(account);
    const mark = `caisson-mark-${randomUUID()}`;
    for (let round = 0; round < 5; round++) {
      await bench.keeper.treeSize(bench.dir);
      const launches = [0, 1, 2].map(() =>
        bench.keeper.launch(inNamespace(bench, isRoot, `exec tail -f /dev/null ${mark}`)),
      );
      await new Promise((resolve) => setTimeout(resolve, round));
      for (const pid of processesWith("caisson-guest\0keeper")) {
        if (isChild(pid)) process.kill(pid, "SIGKILL");
      }
      for (const outcome of await Promise.allSettled(launches)) {
        if (outcome.status === "rejected") assert.equal(outcome.reason.code, "UNAVAILABLE");
        else process.kill(outcome.value.pid, "SIGKILL");
      }
    }
    await bench.keeper.treeSize(bench.dir);
    await eventually("nothing is left", () => processesWith(mark).length === 0);
  });

  test(`a socket's path may be of any length, ${as}`, async () => {
    await using bench = new Bench(account);
    const init = launchOf(bench, isRoot, ["/bin/sleep", "100"]);
    const long = `${bench.dir}/${"a".repeat(100)}/${"b".repeat(100)}`;
    bench.shell(`mkdir -p ${long}`);
    await bench.keeper.launch({ ...init, socket: `${long}/link.sock` });
    const socket = await connectSocket(`${long}/link.sock`);
    socket.destroy();
    await bench.keeper.kill(init.sandbox);
  });

  test(`nobody but root changes uids, and no name runs twice, ${as}`, async () => {
    await using bench = new Bench(account);
    const init = launchOf(bench, isRoot, ["/bin/sleep", "100"]);
    await bench.keeper.launch(init);
    const again = { ...init, socket: `${init.socket}-again` };
    await assert.rejects(bench.keeper.launch(again), { code: "INVALID_INPUT", message: /running/ });
    await assert.rejects(bench.keeper.launch(launchOf(bench, isRoot, [])), { code: "INVALID_INPUT" });
    if (!isRoot) {
      const other = { ...launchOf(bench, false, ["/bin/true"]), uid: sandboxUid, gid: sandboxUid };
      await assert.rejects(bench.keeper.launch(other), { code: "INVALID_INPUT", message: /root/ });
    }
    await bench.keeper.kill(init.sandbox);
  });
}

// Others may make no groups here.
const root = accounts().find(({ uid }) => uid === 0);
if (root) {
  test("everything that a sandbox starts is in its groups", async (t) => {
    const found = findCgroups(randomUUID().slice(0, 12));
    if (!found.cgroups) return t.skip(found.reason);
    const { cgroups } = found;
    await using bench = new Bench(root);
    const group = cgroups.make("sandbox");
    await hasAllIn(bench, [...group.procs]);
    await group.remove();
    cgroups.close();
  });

  test("everything that a sandbox starts is born in its group of the second version", async (t) => {
    const mount = /^\S+ (\S+) cgroup2 /m.exec(readFileSync("/proc/mounts", "utf8"))?.[1];
    if (mount === undefined) return t.skip("no hierarchy of control groups of the second version is mounted");
    await using bench = new Bench(root);
    const group = new CgroupV2(`${mount}/caisson-${randomUUID()}`);
    mkdirSync(dirname(group.procs[0]!));
    await hasAllIn(bench, [...group.procs]);
    await group.remove();
  });
}

async function hasAllIn(bench: Bench, cgroups: string[]): Promise<void> {
  const mark = `caisson-mark-${randomUUID()}`;
  const script = `setsid tail -f /dev/null ${mark} & (tail -f /dev/null ${mark} &) ; exec tail -f /dev/null ${mark}`;
  const init = { ...inNamespace(bench, true, script), cgroups };
  const kept = await bench.keeper.launch(init);
  await eventually("all have started", () => processesWith(mark).length >= 4);
  const members = [...processesWith(mark), kept.pid].map(String);
  for (const file of cgroups) {
    const listed = readFileSync(file, "utf8").split("\n");
    for (const pid of members) assert.ok(listed.includes(pid), `${pid} is not in ${file}`);
  }
  await bench.keeper.kill(init.sandbox);
}

test("what is not a keeper is an error, not a hang", async () => {
  for (const guest of ["/nowhere/caisson-guest", "/bin/true", "/bin/echo"]) {
    const keeper = new Keeper({ guest });
    await assert.rejects(keeper.identity(), { code: "UNAVAILABLE" });
    await keeper.close();
  }
});

function isChild(pid: number): boolean {
  try {
    return new RegExp(`^PPid:\\s+${process.pid}$`, "m").test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
