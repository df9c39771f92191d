// The daemon as a program: one per directory, started on demand, its configuration, its socket's permissions.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { accounts, ordinaryUser, root, self, startDaemon, temporaryDirectory } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { Launcher } from "../support/launcher.ts";

function startAgain(env: Record<string, string>) {
  return spawnSync(join(root, "node_modules/.bin/node"), [join(root, "packages/daemon/src/main.ts")], {
    env,
    encoding: "utf8",
    timeout: 30_000,
  });
}

describe("the daemon", { timeout: 120_000 }, () => {
  it("refuses to share its directory with another, and says whose it is", async () => {
    await using daemon = await startDaemon();
    const second = startAgain(daemon.env);
    assert.equal(second.status, 75);
    assert.match(second.stderr, /daemon/);
    assert.doesNotMatch(second.stderr, /^\s+at /m);
    assert.equal((await new Launcher(daemon).json(["daemon", "status"])).ready, true);
  });

  it("names the file and the setting of a typo in the configuration", () => {
    const home = temporaryDirectory(self());
    const config = join(home, "config.yaml");
    const env = {
      PATH: process.env.PATH!,
      CAISSON_HOME: home,
      CAISSON_CONFIG: config,
      CAISSON_LISTEN_TCP: "off",
    };
    for (const [text, words] of [
      ["poool:\n  min: 1\n", /no setting poool/],
      ["pool:\n  min: lots\n", /pool\.min must be a whole number/],
      ["pool: [\n", /config\.yaml/],
    ] as const) {
      writeFileSync(config, text);
      const { status, stderr } = startAgain(env);
      assert.equal(status, 1);
      assert.match(stderr, /config\.yaml/);
      assert.match(stderr, words);
    }
    writeFileSync(config, "");
    assert.match(startAgain({ ...env, CAISSON_POOL_MIN: "x" }).stderr, /CAISSON_POOL_MIN/);
    rmSync(home, { recursive: true });
  });

  it("lets nobody else near its socket", async () => {
    await using daemon = await startDaemon();
    assert.equal(statSync(join(daemon.home, "run")).mode & 0o777, 0o700);
    assert.equal(statSync(daemon.socket).mode & 0o777, 0o600);
    if (process.getuid!() !== 0) return;
    // Even with the directories open to all, the socket itself refuses.
    for (const dir of [daemon.home, join(daemon.home, "run")]) chmodSync(dir, 0o755);
    const { uid, gid } = ordinaryUser();
    const tried = spawnSync("curl", ["-s", "--unix-socket", daemon.socket, "http://localhost/v1/sandboxes"], {
      uid,
      gid,
    });
    assert.equal(tried.status, 7);
  });

  for (const account of accounts()) {
    it(`is started by the first command, and stops when told, as ${account.name}`, async () => {
      const home = temporaryDirectory(account);
      const env = {
        PATH: process.env.PATH!,
        HOME: account.home,
        CAISSON_HOME: home,
        CAISSON_CONFIG: join(home, "config.yaml"),
        CAISSON_LISTEN_TCP: "off",
      };
      const caisson = new Launcher({ account, env });
      const { code, out, err } = await caisson.run(["run", "--no-workspace", "--", "echo", "hello"]);
      assert.deepEqual([code, out], [0, "hello\n"], err);
      const { pid } = await caisson.json(["daemon", "status"]);
      // A command goes on while no daemon runs, and the next one finds it.
      const box = (await caisson.run(["create", "--no-workspace"])).out.trim();
      await caisson.run([
        "exec",
        "-d",
        box,
        "--",
        "sh",
        "-c",
        "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done",
      ]);
      await caisson.run(["daemon", "stop"]);
      await eventually(
        () => alive(pid),
        (living) => !living,
      );
      assert.equal((await caisson.run(["logs", "-f", box])).out, "1\n2\n3\n4\n5\n6\n");
      await caisson.run(["rm", box]);
      const next = (await caisson.json(["daemon", "status"])).pid;
      assert.notEqual(next, pid);
      await caisson.run(["daemon", "stop"]);
      await eventually(
        () => alive(next),
        (living) => !living,
      );
      rmSync(home, { recursive: true });
    });
  }

  it("is reached through the script at the root", async () => {
    await using daemon = await startDaemon();
    const run = spawnSync(join(root, "caisson"), ["run", "--no-workspace", "--", "echo", "hello"], {
      env: daemon.env,
      encoding: "utf8",
    });
    assert.deepEqual([run.status, run.stdout], [0, "hello\n"], run.stderr);
  });
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
