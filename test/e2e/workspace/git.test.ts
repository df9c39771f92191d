// Repositories in projects: what git inside does, what of it reaches the host, and what would make git on the host act.
import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { accounts, temporaryDirectory } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";
import { makeProject, type Subject, subject } from "./project.ts";

const repository =
  "git init -q . && git config user.name A && git config user.email a@example.org && git config core.autocrlf false && ";
const commit = "git add -A && git commit -qm first";

for (const account of accounts()) {
  describe(`repositories as ${account.name}`, { timeout: 240_000 }, () => {
    const home = temporaryDirectory(account);
    let it: Subject;
    before(async () => {
      it = await subject(account, { HOME: home });
    });
    after(async () => {
      await it[Symbol.asyncDispose]();
      rmSync(home, { recursive: true });
    });

    test("hooks are withheld wherever the owner's settings, an included file or a worktree's have them", async () => {
      writeFileSync(join(home, ".gitconfig"), "[include]\n\tpath = more.inc\n");
      writeFileSync(join(home, "more.inc"), "[core]\n\thooksPath = by/owner\n");
      using project = makeProject(
        account,
        `${repository}printf '[include]\\n\\tpath = ../by.inc\\n' >> .git/config; printf '[core]\\n\\thooksPath = by/include\\n' > by.inc
        git config extensions.worktreeConfig true; git config --worktree core.hooksPath by/worktree; mkdir -p real by; ln -s ../real by/worktree; ${commit}`,
      );
      const box = await it.client.create({ workspace: { dir: project.dir } });
      const places = ["by/owner", "by/include", "real"];
      const script = `for d in ${places.join(" ")}; do mkdir -p $d; echo evil > $d/pre-commit; done; echo fine > by/fine`;
      assert.equal((await box.run(["sh", "-c", script])).code, 0);
      const applied = await box.workspace.apply();
      const withheld = applied.files.filter(({ outcome }) => outcome === "withheld").map(({ path }) => path);
      for (const place of places)
        assert.ok(withheld.includes(`${place}/pre-commit`), `${place}: ${withheld}`);
      assert.equal(project.sh("cat by/fine; find . -name pre-commit"), "fine\n");
      rmSync(join(home, ".gitconfig"));
    });

    test("links out of the project and hooks where the repository has them are withheld", async () => {
      using project = makeProject(
        account,
        `${repository}git config core.hooksPath tools/hooks; mkdir -p tools/hooks; ${commit} || true`,
      );
      const box = await it.client.create({ workspace: { dir: project.dir } });
      await box.run([
        "sh",
        "-c",
        "ln -s /etc/passwd out; ln -s ../../up up; ln -s tools in; echo evil > tools/hooks/pre-commit; mkdir -p v/bin; ln -s /usr/bin/python3 v/bin/python",
      ]);
      const applied = await box.workspace.apply();
      const withheld = applied.files.filter(({ outcome }) => outcome === "withheld").map(({ path }) => path);
      assert.deepEqual(withheld.sort(), ["out", "tools/hooks/pre-commit", "up"]);
      assert.match(project.sh("ls -l in v/bin/python"), /tools[\s\S]*python3/);
      assert.equal((await box.workspace.apply({ paths: ["out"] })).applied, 1);
    });

    test("a worktree that was made inside reaches the host; one that says anything else does not", async () => {
      using project = makeProject(account, `${repository}echo 1 > f; ${commit}`);
      const git = { name: "A", email: "a@example.org" };
      const box = await it.client.create({ workspace: { dir: project.dir }, git });
      const made = await box.run([
        "sh",
        "-ec",
        "git worktree add -q trees/one -b one; cd trees/one; echo 2 > f; git commit -qam two; cd ../..; git worktree add -q trees/bad -b bad; " +
          "git worktree add -q /tmp/outside -b outside; echo /tmp/evil > .git/worktrees/bad/commondir; " +
          "printf '[core]\\n\\tfsmonitor = touch /tmp/pwned\\n' > .git/worktrees/one/config.worktree",
      ]);
      assert.equal(made.code, 0, made.stderr.text);
      const applied = await box.workspace.apply();
      const withheld = applied.files.filter(({ outcome }) => outcome === "withheld").map(({ path }) => path);
      assert.ok(withheld.includes(".git/worktrees/bad/commondir"), withheld.join());
      assert.ok(withheld.includes("trees/bad/.git") && withheld.includes(".git/worktrees/outside/gitdir"));
      assert.ok(withheld.includes(".git/worktrees/one/config.worktree"));
      assert.equal(project.sh("cd trees/one && git log -1 --format=%s && git status --short"), "two\n");
      assert.match(project.sh("git worktree list"), /trees\/one +[0-9a-f]+ \[one\]/);
    });

    test("an index that git wrote only to remember what it has seen is no change; one that stages something is", async () => {
      using project = makeProject(account, `${repository}echo 1 > f; mkdir d; echo 2 > d/g; ${commit}`);
      const box = await it.client.create({ workspace: { dir: project.dir } });
      const look = () => box.workspace.diff().then((changes) => changes.map(({ path }) => path));
      await box.run(["sh", "-c", "touch f; git status --short; git status --short"]);
      assert.match((await box.run(["git", "ls-files", "--debug", "f"])).stdout.text, /mtime/);
      assert.deepEqual(await look(), []);
      // Nor is it a reason to keep anything.
      project.sh("touch f");
      const { sandboxId } = await it.client.run(["sh", "-c", "git status --short; git status --short"], {
        spec: { workspace: { dir: project.dir } },
      });
      await eventually(
        () => existsSync(join(it.daemon.home, "sandboxes", sandboxId, "layer")),
        (kept) => !kept,
      );
      await box.run(["sh", "-c", "echo 3 > f; git add f"]);
      assert.ok((await look()).includes(".git/index"));
      await box.workspace.apply();
      assert.equal(project.sh("git status --short"), "M  f\n");
    });

    test("git inside trusts the project, reads it by size and time, and commits as whom it was told", async () => {
      using project = makeProject(
        account,
        `${repository}git config --unset user.name; git config --unset user.email; echo 1 > f; git -c user.name=H -c user.email=h@h add -A; git -c user.name=H -c user.email=h@h commit -qm first`,
      );
      const spec = { workspace: { dir: project.dir } };
      const who = await it.client.run(
        ["sh", "-c", "git status --short; echo 2 > f; git commit -qam second"],
        { spec },
      );
      assert.notEqual(who.code, 0);
      assert.match(who.stderr.text, /tell me who you are/);
      const git = { name: 'An "Agent" \\ One', email: "agent@example.org" };
      const box = await it.client.create({ ...spec, git });
      const made = await box.run([
        "sh",
        "-c",
        "echo 2 > f; git commit -qam second; git log -1 --format='%an <%ae>'; git worktree add -q ../tree 2>&1; git branch topic",
      ]);
      assert.match(made.stdout.text, /^An "Agent" \\ One <agent@example\.org>\n/);
      await box.workspace.apply();
      assert.equal(project.sh("git log -1 --format=%s; git branch --list topic"), "second\n  topic\n");
      await assert.rejects(it.client.create({ git: { name: "a\nb", email: "x" } }), {
        code: "INVALID_INPUT",
      });
    });
  });
}
