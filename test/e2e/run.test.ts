// Commands by the terminal: input, output, exit codes, and what becomes of them when their caller goes.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { type Account, accounts, processesWith, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { ending, Launcher } from "../support/launcher.ts";

const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

for (const account of accounts()) suite(account);

function suite(account: Account): void {
  describe(`commands by the terminal as ${account.name}`, { timeout: 120_000 }, () => {
    let daemon: TestDaemon;
    let caisson: Launcher;
    before(async () => {
      daemon = await startDaemon({ account });
      caisson = new Launcher(daemon);
    });
    after(() => daemon[Symbol.asyncDispose]());
    const run = (argv: string[], options = {}) => caisson.run(["run", "--", ...argv], options);

    it("prints what the command prints, and nothing else", async () => {
      const { code, out, err } = await run(["sh", "-c", "echo out; echo err >&2"]);
      assert.deepEqual([code, out, err.replace(/^caisson: no project.*\n/m, "")], [0, "out\n", "err\n"]);
    });

    it("passes exit codes through", async () => {
      for (const code of [1, 3, 99]) assert.equal((await run(["sh", "-c", `exit ${code}`])).code, code);
    });

    it("uses the exit codes that people know", async () => {
      assert.equal((await run(["no-such-program"])).code, 127);
      assert.equal((await run(["/etc/passwd"])).code, 126);
      assert.equal((await run(["sh", "-c", "kill -9 $$"])).code, 137);
      assert.equal((await run(["sh", "-c", "kill -15 $$"])).code, 143);
      assert.equal((await caisson.run(["run", "--no-such-option", "--", "true"])).code, 125);
      assert.equal((await caisson.run(["exec", "sb_0000000000000000", "--", "true"])).code, 125);
      assert.equal((await caisson.run(["run", "--driver", "nothing", "--", "true"])).code, 125);
    });

    it("hands standard input on, to its end", async () => {
      assert.equal((await run(["cat"], { stdin: "one\ntwo\n" })).out, "one\ntwo\n");
      assert.equal((await run(["wc", "-c"], { stdin: "" })).out, "0\n");
    });

    it("keeps binary input and output exact", async () => {
      const data = randomBytes(6_000_000);
      const { code, stdout } = await run(["cat"], { stdin: data });
      assert.equal(code, 0);
      assert.equal(hash(stdout), hash(data));
    });

    it("ends quietly when the command does not read its input", async () => {
      const { code, out } = await run(["sh", "-c", "exec <&-; echo ok"], { stdin: randomBytes(2_000_000) });
      assert.deepEqual([code, out], [0, "ok\n"]);
    });

    it("hands arguments over exactly as they are", async () => {
      const given = ["", "a b", "*", "--json", "žluťoučký 🐎", "-x", "--"];
      const { out } = await run(["perl", "-e", 'print join("|", @ARGV)', "--", ...given]);
      assert.equal(out, given.join("|"));
    });

    it("passes variables by name, by value and by file, and no others", async () => {
      const { out } = await caisson.run(["run", "-e", "MINE", "-e", "GIVEN=x y", "--", "env"], {
        env: { MINE: "mine", HIDDEN: "hidden" },
      });
      assert.match(out, /^MINE=mine$/m);
      assert.match(out, /^GIVEN=x y$/m);
      assert.doesNotMatch(out, /hidden|CAISSON_HOME/);
    });

    it("gives the whole result as one JSON document", async () => {
      const { code, out } = await caisson.run(["run", "--json", "--", "sh", "-c", "printf 'a\\377'; exit 4"]);
      const parsed = JSON.parse(out);
      assert.deepEqual([code, parsed.exit.code], [4, 4]);
      assert.deepEqual(Buffer.from(parsed.stdout_bytes, "base64"), Buffer.from("a\xff", "latin1"));
    });

    it("ends the command on Ctrl-C", async () => {
      const child = caisson.start(["run", "--", "sh", "-c", "echo up; exec sleep 7103"]);
      const said = ending(child);
      await new Promise((resolve) => child.stdout!.once("data", resolve));
      child.kill("SIGINT");
      const { code } = await said;
      assert.equal(code, 130);
      await eventually(
        () => processesWith("sleep 7103"),
        (left) => left.length === 0,
      );
    });

    it("kills a command that ignores Ctrl-C at the second one", async () => {
      const child = caisson.start([
        "run",
        "--",
        "sh",
        "-c",
        "trap '' INT TERM; echo up; while :; do sleep 7105; done",
      ]);
      const said = ending(child);
      await new Promise((resolve) => child.stdout!.once("data", resolve));
      child.kill("SIGINT");
      setTimeout(() => child.kill("SIGINT"), 200);
      assert.ok([130, 137].includes((await said).code!));
      await eventually(
        () => processesWith("sleep 7105"),
        (left) => left.length === 0,
      );
    });

    it("ends the command when its launcher vanishes", async () => {
      const child = caisson.start(["run", "--", "sh", "-c", "echo up; exec sleep 7107"]);
      await new Promise((resolve) => child.stdout!.once("data", resolve));
      child.kill("SIGKILL");
      await eventually(
        () => processesWith("sleep 7107"),
        (left) => left.length === 0,
      );
      await eventually(
        () => caisson.json(["ls"]),
        (living) => living.length === 0,
      );
    });

    it("streams output while the command runs", async () => {
      const child = caisson.start(["run", "--", "sh", "-c", "echo first; read line; echo $line"], {
        input: "pipe",
      });
      const said = ending(child);
      await new Promise((resolve) => child.stdout!.once("data", resolve));
      child.stdin!.end("second\n");
      assert.equal((await said).out, "first\nsecond\n");
    });

    it("ends quietly when its reader goes", async () => {
      const child = caisson.start(["run", "--", "sh", "-c", "yes"]);
      await new Promise((resolve) => child.stdout!.once("data", resolve));
      child.stdout!.destroy();
      child.stderr!.resume();
      await new Promise((resolve) => child.once("exit", resolve));
      await eventually(
        () => caisson.json(["ls"]),
        (living) => living.length === 0,
      );
    });
  });
}
