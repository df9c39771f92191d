// Every other command of the terminal, each in the form people type and with --json.
import assert from "node:assert/strict";
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  type Account,
  accounts,
  startDaemon,
  type TestDaemon,
  temporaryDirectory,
} from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { ending, Launcher, type Parsed } from "../support/launcher.ts";

for (const account of accounts()) suite(account);

function suite(account: Account): void {
  describe(`the terminal as ${account.name}`, { timeout: 120_000 }, () => {
    let daemon: TestDaemon;
    let caisson: Launcher;
    let dir: string;
    let box: string;
    before(async () => {
      daemon = await startDaemon({ account });
      dir = temporaryDirectory(account);
      caisson = new Launcher(daemon, dir);
      box = (await caisson.run(["create", "--no-workspace", "--label", "task=1"])).out.trim();
      assert.match(box, /^sb_[a-z0-9]{16}$/);
    });
    after(async () => {
      await daemon[Symbol.asyncDispose]();
      rmSync(dir, { recursive: true, force: true });
    });
    const ok = async (args: string[], options = {}) => {
      const said = await caisson.run(args, options);
      assert.equal(said.code, 0, `caisson ${args.join(" ")}: ${said.err}`);
      return said.out;
    };
    const own = (path: string, text: string) => {
      writeFileSync(join(dir, path), text);
      chownSync(join(dir, path), account.uid, account.gid);
    };

    it("lists sandboxes and their commands", async () => {
      const [sandbox] = await caisson.json(["ls"], ["--label", "task=1"]);
      assert.equal(sandbox.id, box);
      assert.deepEqual(await caisson.json(["ls"], ["--label", "task=2"]), []);
      assert.match(await ok(["ls"]), new RegExp(box));
      assert.equal(await ok(["ls", "-q"]), `${box}\n`);
      await ok(["exec", box, "--", "true"]);
      assert.deepEqual(await caisson.json(["ps", box]), []);
      assert.equal((await caisson.json(["ps", box], ["--all"])).length, 1);
      assert.match(await ok(["ps", "--all", box]), /exit 0/);
      assert.equal(typeof (await caisson.json(["stats", box])), "object");
    });

    it("starts a command aside, shows its output from a number, and attaches to it", async () => {
      const id = (
        await ok(["exec", "--detach", box, "--", "sh", "-c", "echo 0123456789; sleep 0.3; echo end; exit 6"])
      ).trim();
      assert.match(id, /^p\d+$/);
      const attached = await caisson.run(["attach", box, id]);
      assert.deepEqual([attached.code, attached.out], [6, "0123456789\nend\n"]);
      assert.equal(await ok(["logs", box, id]), "0123456789\nend\n");
      assert.equal(await ok(["logs", "--from", "4", box, id]), "456789\nend\n");
      const lines = (await ok(["logs", "--json", box, id])).trim().split("\n");
      assert.equal(lines.map((line) => JSON.parse(line)).at(-1).seq, 15);
    });

    it("follows a command's output until it ends", async () => {
      const id = (
        await ok(["exec", "-d", box, "--", "sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.1; done"])
      ).trim();
      assert.equal(await ok(["logs", "-f", box, id]), "1\n2\n3\n");
    });

    it("copies files and trees in and out, exactly", async () => {
      const data = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i % 251));
      mkdirSync(join(dir, "tree/sub"), { recursive: true });
      writeFileSync(join(dir, "tree/sub/blob"), data);
      await ok(["cp", "tree", `${box}:/tmp/`]);
      await ok(["cp", "tree/sub/blob", `${box}:/tmp/one`]);
      assert.equal(
        await ok(["exec", box, "--", "sh", "-c", "cmp /tmp/one /tmp/tree/sub/blob && echo same"]),
        "same\n",
      );
      chownDir(dir, account);
      await ok(["cp", `${box}:/tmp/tree`, "back"]);
      assert.ok(readFileSync(join(dir, "back/sub/blob")).equals(data));
      await ok(["cp", `${box}:/tmp/one`, "one"]);
      assert.ok(readFileSync(join(dir, "one")).equals(data));
      const tar = await caisson.run(["cp", `${box}:/tmp/tree`, "-"]);
      assert.ok(tar.stdout.includes(data.subarray(0, 5000)));
      assert.equal((await caisson.run(["cp", "absent", `${box}:/tmp/`])).code, 2);
    });

    it("looks at and changes files", async () => {
      await ok(["files", "write", "-p", box, "/tmp/d/f"], { stdin: "hello\n" });
      assert.equal(await ok(["files", "cat", box, "/tmp/d/f"]), "hello\n");
      assert.equal((await caisson.json(["files", "stat"], [box, "/tmp/d/f"])).size, 6);
      await ok(["files", "mv", box, "/tmp/d/f", "/tmp/d/g"]);
      const { files } = await caisson.json(["files", "ls"], [box, "/tmp/d"]);
      assert.deepEqual(
        files.map(({ path }: { path: string }) => path),
        ["g"],
      );
      await ok(["files", "mkdir", box, "/tmp/d/e"]);
      await ok(["files", "rm", "-r", box, "/tmp/d"]);
      const gone = await caisson.run(["files", "cat", "--json", box, "/tmp/d/g"]);
      assert.equal(gone.code, 1);
      assert.equal(JSON.parse(gone.err).error.code, "PATH_NOT_FOUND");
    });

    it("shows, applies, takes back and discards what a run changed", async () => {
      const project = temporaryDirectory(account);
      const here = { cwd: project };
      writeFileSync(join(project, "a.txt"), "one\n");
      writeFileSync(join(project, "b.txt"), "gone soon\n");
      chownDir(project, account);
      const quiet = await caisson.run(["run", "--", "cat", "a.txt"], here);
      assert.deepEqual([quiet.out, quiet.err], ["one\n", ""]);
      const edit =
        "echo two >> a.txt; rm b.txt; echo new > c.txt; mkdir .vscode; echo {} > .vscode/settings.json";
      const edited = await caisson.run(["run", "--", "sh", "-c", edit], here);
      assert.match(edited.err, /^caisson: 4 files changed, kept aside: `caisson diff`, then .*\n$/);
      assert.equal(readFileSync(join(project, "a.txt"), "utf8"), "one\n");
      const diff = await ok(["diff"], here);
      assert.match(diff, /^\+two$/m);
      assert.match(diff, /b\.txt/);
      const names = await caisson.json(["diff"], [], here);
      assert.ok(names.some(({ path }: Parsed) => path === "c.txt"));
      const applied = await caisson.json(["apply"], [], here);
      assert.equal(readFileSync(join(project, "a.txt"), "utf8"), "one\ntwo\n");
      assert.equal(readFileSync(join(project, "c.txt"), "utf8"), "new\n");
      assert.equal(existsSync(join(project, "b.txt")), false);
      assert.equal(existsSync(join(project, ".vscode/settings.json")), false);
      assert.equal(applied.withheld, 1);
      await ok(["undo", applied.sandbox_id], here);
      assert.equal(readFileSync(join(project, "a.txt"), "utf8"), "one\n");
      assert.equal(readFileSync(join(project, "b.txt"), "utf8"), "gone soon\n");
      assert.equal(existsSync(join(project, "c.txt")), false);
      await ok(["discard"], here);
      rmSync(project, { recursive: true });
    });

    it("shares a session between commands", async () => {
      await ok(["run", "--session", "work", "--", "sh", "-c", "echo kept > ~/f"]);
      assert.equal(await ok(["exec", "work", "--", "cat", "/home/agent/f"]), "kept\n");
      await ok(["rm", "work"]);
    });

    it("tells what happened, and that nobody changed it", async () => {
      const events = (await ok(["events", "--json"]))
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      assert.deepEqual(
        events.map(({ seq }) => seq),
        events.map((_, i) => i + 1),
      );
      const later = (await ok(["events", "--from", "3", "--json"])).trim().split("\n");
      assert.equal(JSON.parse(later[0]!).seq, 4);
      assert.match(await ok(["audit", "verify"]), /^\d+ events are intact/);
      assert.equal((await caisson.json(["audit", "verify"])).intact, true);
    });

    it("follows events as they come", async () => {
      const child = caisson.start(["events", "-f", "--type", "process.", "--json"]);
      const said = ending(child);
      let seen = "";
      child.stdout!.on("data", (data) => {
        seen += data;
      });
      await ok(["exec", box, "--", "echo", "followed"]);
      await eventually(
        () => seen,
        (text) => text.includes("followed"),
      );
      child.kill("SIGINT");
      await said;
    });

    it("says how this machine is, and where each setting comes from", async () => {
      const { findings } = await caisson.json(["doctor", "--quick"]);
      assert.ok(findings.some(({ subject }: Parsed) => /bubblewrap/.test(subject)));
      const { settings } = await caisson.json(["config", "show"]);
      const tcp = settings.find(({ key }: { key: string }) => key === "listen.tcp");
      assert.equal(tcp.value, "off");
      assert.match(tcp.source, /CAISSON_LISTEN_TCP/);
      assert.ok((await caisson.json(["profile", "ls"])).length >= 3);
      assert.equal((await caisson.json(["daemon", "status"])).ready, true);
      assert.match((await caisson.json(["version"])).contract, /^v1$/);
      assert.match(JSON.parse(await ok(["openapi"])).openapi, /^3\.1/);
      assert.ok(Array.isArray(await caisson.json(["df"])));
    });

    it("counts a project's own file only once it is trusted", async () => {
      own("caisson.yaml", "sandbox:\n  env:\n    FROM_PROJECT: yes-it-is\n");
      const before = await caisson.run(["run", "--", "env"]);
      assert.doesNotMatch(before.out, /FROM_PROJECT/);
      await ok(["config", "trust"]);
      assert.match(await ok(["run", "--", "env"]), /^FROM_PROJECT=yes-it-is$/m);
      own("caisson.yaml", "sandbox:\n  env:\n    FROM_PROJECT: changed\n");
      assert.doesNotMatch((await caisson.run(["run", "--", "env"])).out, /FROM_PROJECT/);
      rmSync(join(dir, "caisson.yaml"));
    });

    it("makes, lists and revokes keys", async () => {
      const { secret, name } = await caisson.json(["keys", "create"], ["ci", "--scope", "read"]);
      assert.equal(name, "ci");
      const listed = await ok(["keys", "ls", "--json"]);
      assert.ok(!listed.includes(secret));
      assert.equal(JSON.parse(listed)[0].name, "ci");
      await ok(["keys", "revoke", "ci"]);
      assert.deepEqual(await caisson.json(["keys", "ls"]), []);
    });

    it("completes itself in every shell, by scripts that the shell accepts", async () => {
      for (const shell of ["bash", "zsh", "fish"]) assert.match(await ok(["completion", shell]), /caisson/);
      own("completion.bash", await ok(["completion", "bash"]));
      const { spawnSync } = await import("node:child_process");
      assert.equal(spawnSync("bash", ["-n", join(dir, "completion.bash")]).status, 0);
    });

    it("suggests what was meant, and helps", async () => {
      const typo = await caisson.run(["exce", "x"]);
      assert.equal(typo.code, 2);
      assert.match(typo.err, /did you mean exec\?/);
      assert.match((await caisson.run(["run", "--timeuot", "3s", "--", "true"])).err, /--timeout/);
      assert.match(await ok(["help"]), /run/);
      assert.match(await ok(["run", "--help"]), /Examples?/i);
    });

    it("gives errors as JSON where that was asked for", async () => {
      for (const args of [
        ["ps", "--json", "sb_0000000000000000"],
        ["nonsense", "--json"],
        ["logs", "--json", box, "p999"],
      ]) {
        const { err, code } = await caisson.run(args);
        assert.notEqual(code, 0);
        const { error } = JSON.parse(err);
        assert.ok(error.code && error.message && error.next_step, err);
      }
    });

    it("removes what is no longer needed", async () => {
      const extra = (await ok(["create", "--no-workspace"])).trim();
      await ok(["extend", "--idle-ttl", "2h", extra]);
      await ok(["rm", extra]);
      assert.equal((await caisson.run(["exec", extra, "--", "true"])).code, 125);
      await ok(["prune"]);
    });
  });
}

function chownDir(path: string, { uid, gid }: Account): void {
  for (const entry of ["", "a.txt", "b.txt", "tree", "tree/sub", "tree/sub/blob"]) {
    const whole = join(path, entry);
    if (existsSync(whole)) chownSync(whole, uid, gid);
  }
}
