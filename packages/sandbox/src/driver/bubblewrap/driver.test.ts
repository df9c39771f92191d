import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, realpathSync, statSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { MechanismState } from "@caisson/contract";
import { Mount_Kind } from "@caisson/contract/link";
import { type Account, accounts, Bench, eventually, processesWith } from "../../keeper/testing.ts";
import type { Guest, OutputSink, SealInit } from "../../link/guest.ts";
import { openGuest } from "../../link/open.ts";
import type { Launched, MountSource } from "../driver.ts";
import { BubblewrapDriver } from "./driver.ts";

/** A driver on a keeper of somebody's. */
class DriverBench extends Bench {
  readonly driver: BubblewrapDriver;

  constructor(account: Account) {
    super(account);
    this.driver = new BubblewrapDriver({ keeper: this.keeper, guest: this.guest });
  }

  async launch(): Promise<{ id: string; dir: string; launched: Launched }> {
    const id = randomUUID();
    const dir = `${this.dir}/${id}`;
    mkdirSync(dir, { mode: 0o700 });
    this.give(dir);
    return {
      id,
      dir,
      launched: await this.driver.launch({ sandboxId: id, image: "host", dir, cgroups: [] }),
    };
  }

  /** A project, and a layer for the changes to it. */
  project(): { sources: MountSource[]; mounts: NonNullable<SealInit["mounts"]>; path: string } {
    this.shell("mkdir -p project layer/upper layer/work; echo hello > project/file; chmod 700 project");
    const path = realpathSync(`${this.dir}/project`);
    const [project, layer] = ["project", "layer"].map((name) =>
      statSync(`${this.dir}/${name}`, { bigint: true }),
    );
    assert.ok(project && layer);
    return {
      path,
      sources: [
        { path, readOnly: true, mapOwner: true, refuseNested: true },
        { path: `${this.dir}/layer`, readOnly: false, mapOwner: true, refuseNested: false },
      ],
      mounts: [
        { kind: Mount_Kind.LOWER, path, readOnly: true, device: project.dev, inode: project.ino },
        { kind: Mount_Kind.UPPER, path, device: layer.dev, inode: layer.ino },
      ],
    };
  }
}

function sealOf(mounts: NonNullable<SealInit["mounts"]>, workdir: string): SealInit {
  return {
    mounts,
    hostname: "box",
    uid: 1000,
    gid: 1000,
    user: "agent",
    home: "/home/agent",
    workdir,
    env: ["PATH=/usr/bin:/bin"],
    rlimits: { openFiles: 1024n, processes: 256n },
  };
}

/** Runs a script to its end and returns what it printed. */
async function run(guest: Guest, script: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let printed = "";
  let position = 0;
  const sink: OutputSink = {
    get position() {
      return position;
    },
    async write(_tag, bytes) {
      printed += Buffer.from(bytes).toString();
      position += bytes.length;
    },
    exited: () => resolve(),
  };
  await guest.start({ stream: guest.nextStream(), argv: ["/bin/sh", "-c", script] }, sink);
  await promise;
  return printed;
}

for (const account of accounts()) {
  const isRoot = account.uid === 0;
  const as = `as ${account.name}`;

  test(`a project is handed in, written to aside, and keeps its owner, ${as}`, async () => {
    await using bench = new DriverBench(account);
    const { launched } = await bench.launch();
    const guest = await openGuest(() => launched.connect(), { ended: launched.ended });
    assert.equal(guest.hello.sealed, false);
    const { sources, mounts, path } = bench.project();
    const sealed = guest.seal(sealOf(mounts, path));
    const attached = await launched.attach(sources);
    assert.deepEqual(
      attached.map(({ device, inode, isFile }) => [device, inode, isFile]),
      mounts.map(({ device, inode }) => [device, inode, false]),
    );
    await sealed;
    const printed = await run(
      guest,
      "cat file; echo changed > file; echo new > made; id -u; stat -c %u file",
    );
    assert.equal(printed, "hello\n1000\n1000\n");
    assert.equal(readFileSync(`${bench.dir}/project/file`, "utf8"), "hello\n");
    assert.equal(readFileSync(`${bench.dir}/layer/upper/file`, "utf8"), "changed\n");
    assert.equal(statSync(`${bench.dir}/layer/upper/made`).uid, account.uid);
    guest.close();
    await launched.kill();
  });

  test(`a sandbox is not the host's root, and says by what means, ${as}`, async () => {
    await using bench = new DriverBench(account);
    const [one, two] = await Promise.all([bench.launch(), bench.launch()]);
    const uids = [one, two].map(({ launched }) => launched.record.uid);
    for (const { launched } of [one, two]) {
      const status = readFileSync(`/proc/${launched.record.pid}/status`, "utf8");
      assert.match(status, new RegExp(`^Uid:\\s+${launched.record.uid}\\s`, "m"));
      assert.notEqual(launched.record.uid, 0);
      const mechanisms = launched.mechanisms();
      assert.ok(mechanisms.every(({ state }) => state === MechanismState.ENFORCED));
      for (const name of ["user", "pid", "network", "ipc", "uts", "cgroup", "mount"]) {
        assert.ok(
          mechanisms.some((mechanism) => mechanism.name === `namespace.${name}`),
          name,
        );
      }
    }
    assert.equal(new Set(uids).size, isRoot ? 2 : 1);
    await Promise.all([one.launched.kill(), two.launched.kill()]);
    assert.match(await one.launched.ended, /killed by signal 9/);
  });

  test(`what was handed in is refused when it is not a project, ${as}`, async () => {
    await using bench = new DriverBench(account);
    const { launched } = await bench.launch();
    bench.shell("mkdir project; mkfifo fifo; ln -s project link");
    const attach = (path: string) =>
      launched.attach([{ path, readOnly: true, mapOwner: false, refuseNested: true }]);
    await assert.rejects(attach("/"), { code: "WORKSPACE_REFUSED", message: /mounted at \// });
    await assert.rejects(attach(`${bench.dir}/fifo`), { code: "WORKSPACE_REFUSED" });
    await assert.rejects(attach("/proc/1"), { code: "WORKSPACE_REFUSED" });
    await assert.rejects(attach("/nowhere"), { code: "PATH_NOT_FOUND" });
    await assert.rejects(attach("relative"), { code: "INVALID_PATH" });
    // No link is followed: a real path is what was looked at.
    await assert.rejects(attach(`${bench.dir}/link`), {
      code: "WORKSPACE_REFUSED",
      message: /symbolic link/,
    });
    const [attached] = await attach(`${bench.dir}/project`);
    assert.equal(attached?.inode, statSync(`${bench.dir}/project`, { bigint: true }).ino);
    await launched.kill();
    await assert.rejects(attach(bench.dir), { code: "GUEST_LOST" });
  });

  test(`after the seal nothing more is handed in, ${as}`, async () => {
    await using bench = new DriverBench(account);
    const { launched } = await bench.launch();
    const guest = await openGuest(() => launched.connect(), { ended: launched.ended });
    await guest.seal(sealOf([], "/home/agent"));
    const sources = [{ path: bench.dir, readOnly: true, mapOwner: true, refuseNested: true }];
    await assert.rejects(launched.attach(sources));
    assert.equal(await run(guest, "echo still there"), "still there\n");
    guest.close();
    await launched.kill();
  });

  for (const sealed of [false, true]) {
    test(`with no keeper around, ${sealed ? "a sealed" : "an unsealed"} guest dies with its outer process, ${as}`, async () => {
      await using bench = new DriverBench(account);
      const { launched, id } = await bench.launch();
      const guest = await openGuest(() => launched.connect(), { ended: launched.ended });
      const mark = `caisson-mark-${id}`;
      if (sealed) {
        await guest.seal(sealOf([], "/home/agent"));
        await run(guest, `tail -f /dev/null ${mark} >/dev/null 2>&1 &`);
        assert.ok(processesWith(mark).length > 0);
      }
      const children = readFileSync(
        `/proc/${launched.record.pid}/task/${launched.record.pid}/children`,
        "utf8",
      );
      const init = Number(children.trim());
      guest.close();
      await bench.keeper.close();
      process.kill(launched.record.pid, "SIGKILL");
      await eventually("PID 1 is gone", () => !isAlive(init));
      await eventually("nothing is left", () => processesWith(mark).length === 0);
    });
  }

  test(`an adopted sandbox goes on where it was, ${as}`, async () => {
    await using bench = new DriverBench(account);
    const { launched, id } = await bench.launch();
    const guest = await openGuest(() => launched.connect(), { ended: launched.ended });
    await guest.seal(sealOf([], "/home/agent"));
    guest.close();

    const record = JSON.parse(JSON.stringify(launched.record));
    const keeper = bench.newKeeper();
    const driver = new BubblewrapDriver({ keeper, guest: bench.guest });
    const adopted = await driver.adopt(id, record);
    assert.ok(adopted);
    const again = await openGuest(() => adopted.connect(), { ended: adopted.ended });
    assert.equal(again.hello.sealed, true);
    assert.equal(await run(again, "echo here"), "here\n");
    again.close();
    await adopted.kill();
    assert.equal(await driver.adopt(id, record), undefined);
    await keeper.close();
  });
}

test("a guest binary behind closed directories can be started for an unused uid", async () => {
  const [account] = accounts();
  assert.ok(account);
  await using bench = new DriverBench(account);
  mkdirSync(`${bench.dir}/closed`, { mode: 0o700 });
  bench.give(`${bench.dir}/closed`);
  bench.shell(`cp ${bench.guest} closed/caisson-guest; ln -s closed linked`);
  const driver = new BubblewrapDriver({ keeper: bench.keeper, guest: `${bench.dir}/linked/caisson-guest` });
  const dir = `${bench.dir}/box`;
  mkdirSync(dir, { mode: 0o700 });
  bench.give(dir);
  symlinkSync("box", `${bench.dir}/box-link`);
  const launched = await driver.launch({ sandboxId: "box", image: "host", dir, cgroups: [] });
  const guest = await openGuest(() => launched.connect(), { ended: launched.ended });
  assert.equal(guest.hello.sealed, false);
  guest.close();
  await launched.kill();
});

test("a sandbox that cannot start says why", async () => {
  const [account] = accounts();
  assert.ok(account);
  await using bench = new DriverBench(account);
  bench.shell("printf '#!/bin/sh\\necho the last words >&2; exit 74\\n' > broken; chmod 755 broken");
  const driver = new BubblewrapDriver({ keeper: bench.keeper, guest: `${bench.dir}/broken` });
  const launched = await driver.launch({ sandboxId: "box", image: "host", dir: bench.dir, cgroups: [] });
  assert.equal(await launched.ended, "the guest failed at user namespaces: the last words");
});

test("an image that there is not is an error", async () => {
  const [account] = accounts();
  assert.ok(account);
  await using bench = new DriverBench(account);
  const spec = { sandboxId: "box", image: "debian:12", dir: bench.dir, cgroups: [] };
  await assert.rejects(bench.driver.launch(spec), { code: "INVALID_INPUT" });
});

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
