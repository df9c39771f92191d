// A daemon that is older than what it was made from: noticed by the next command, and by itself.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { connect } from "@caisson/client";
import { type Account, readText, root, self, temporaryDirectory } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { ending, Launcher } from "../support/launcher.ts";

/** A checkout of our own to edit. */
function checkout(): string {
  const copy = mkdtempSync(join(tmpdir(), "caisson-checkout-"));
  for (const part of ["packages", "spec", ".caisson", "package.json"]) {
    assert.equal(spawnSync("cp", ["-a", join(root, part), copy]).status, 0);
  }
  // Packages of others are shared, ours are the copy's.
  assert.equal(
    spawnSync("sh", [
      "-c",
      'mkdir "$1/node_modules" && cd "$1/node_modules" && ln -s "$0"/node_modules/* "$0"/node_modules/.bin . && rm @caisson && cp -a "$0/node_modules/@caisson" .',
      root,
      copy,
    ]).status,
    0,
  );
  return copy;
}

function setUp() {
  const account: Account = { ...self(), root: checkout() };
  const home = temporaryDirectory(account);
  const env = {
    PATH: process.env.PATH!,
    HOME: process.env.HOME!,
    CAISSON_HOME: home,
    CAISSON_CONFIG: join(home, "config.yaml"),
    CAISSON_LISTEN_TCP: "off",
    CAISSON_ROOT: account.root,
  };
  const caisson = new Launcher({ account, env });
  after(async () => {
    await caisson.run(["prune"]);
    const { stopping } = await caisson.json(["daemon", "stop"]);
    await eventually(
      () => existsSync(`/proc/${stopping}`),
      (living) => !living,
    );
    for (const dir of [home, account.root]) rmSync(dir, { recursive: true });
  });
  return { account, caisson, socket: join(home, "run/daemon.sock"), log: join(home, "daemon.log") };
}

/** The launcher with another build's name in it. */
function ofAnotherBuild(
  account: Account,
  caisson: Launcher,
): { run(args: string[]): ReturnType<Launcher["run"]> } {
  const guest = join(account.root, ".caisson/bin/caisson-guest");
  const build = spawnSync(guest, ["build-id"], { encoding: "utf8" }).stdout.trim();
  // Its end may also stand in instructions.
  const end = build.slice(-8);
  const text = readFileSync(guest, "latin1").replaceAll(
    end,
    end.slice(0, -1) + (end.endsWith("0") ? "1" : "0"),
  );
  const other = join(account.root, ".caisson/other");
  mkdirSync(join(other, "bin"), { recursive: true });
  writeFileSync(join(other, "bin/caisson"), text, { encoding: "latin1", mode: 0o755 });
  return { run: (args) => ending(caisson.start(args, {}, join(other, "bin/caisson"))) };
}

describe("an old daemon", { timeout: 180_000 }, () => {
  it("is replaced by the next command, and no output of what runs is lost", async () => {
    const { account, caisson } = setUp();
    const box = (await caisson.run(["create", "--no-workspace"])).out.trim();
    const count = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.2; done";
    await caisson.run(["exec", "-d", box, "--", "sh", "-c", count]);
    const { started_at } = await caisson.json(["daemon", "status"]);
    appendFileSync(join(account.root, "packages/cli/src/commands/version.ts"), "\n// Edited.\n");
    const followed = await caisson.run(["logs", "-f", box]);
    assert.equal(followed.out, "1\n2\n3\n4\n5\n6\n7\n8\n", followed.err);
    assert.notEqual((await caisson.json(["daemon", "status"])).started_at, started_at);
    assert.equal((await caisson.run(["exec", box, "--", "echo", "here"])).out, "here\n");
    await caisson.run(["rm", box]);
  });

  it("serves the SDK with its own guest while another is installed, then gives way by itself", async () => {
    const { account, caisson, socket, log } = setUp();
    const { pid } = await caisson.json(["daemon", "start"]);
    await using client = await connect({ socket });
    const living = await client.create({});
    const guest = join(account.root, ".caisson/bin/caisson-guest");
    copyFileSync("/bin/false", `${guest}.new`);
    const call = client.run(["sh", "-c", "sleep 3; echo done"]);
    renameSync(`${guest}.new`, guest);
    // Ready sandboxes are of the build that the daemon was started with.
    for (let made = 0; made < 4; made++) {
      const box = await client.create({});
      assert.equal((await box.run(["echo", "yes"])).stdout.text, "yes\n");
      await box.delete();
    }
    assert.equal((await call).stdout.text, "done\n");
    copyFileSync(join(root, ".caisson/bin/caisson-guest"), `${guest}.new`);
    renameSync(`${guest}.new`, guest);
    await eventually(
      () => readText(log).match(/"message":"ready"/g)!.length,
      (starts) => starts === 2,
    );
    assert.equal((await client.system.health()).ready, true);
    assert.equal((await caisson.json(["daemon", "status"])).pid, pid);
    assert.equal((await living.run(["echo", "still"])).stdout.text, "still\n");
    await living.delete();
  });

  it("serves on while its new sources are broken, says so, and gives way once they are mended", async () => {
    const { account, caisson, log } = setUp();
    await caisson.run(["daemon", "start"]);
    const { started_at } = await caisson.json(["daemon", "status"]);
    const edited = join(account.root, "packages/daemon/src/paths.ts");
    const whole = readText(edited);
    writeFileSync(edited, `${whole}\nconst = ;\n`);
    assert.equal((await caisson.run(["run", "--no-workspace", "--", "echo", "served"])).out, "served\n");
    await eventually(
      () => caisson.run(["daemon", "status"]),
      ({ out, err }) => /no daemon can be made of those: .*Error/.test(`${out}${err}`),
    );
    assert.equal((await caisson.json(["daemon", "status"])).started_at, started_at);
    assert.match(readText(log), /no daemon can be made of them/);
    // One that is younger than a few seconds was just started by the same call, as far as it knows.
    const refused = await eventually(
      () => caisson.run(["daemon", "restart"]),
      ({ code }) => code !== 0,
    );
    assert.match(refused.err, /not restarted: none can be made of the sources .*: SyntaxError/);
    const foreign = await ofAnotherBuild(account, caisson).run(["version"]);
    assert.match(foreign.err, /of another build than the daemon.*: SyntaxError/);
    assert.equal(foreign.code, 125);
    assert.equal((await caisson.json(["daemon", "status"])).started_at, started_at);
    writeFileSync(edited, `${whole}\n// Edited.\n`);
    // One that is asked while it gives way may not answer any more.
    await eventually(
      () => caisson.json(["daemon", "status"]).catch(() => ({ started_at })),
      (now) => now.started_at !== started_at,
    );
    assert.equal((await caisson.run(["run", "--no-workspace", "--", "echo", "new"])).out, "new\n");
  });
});
