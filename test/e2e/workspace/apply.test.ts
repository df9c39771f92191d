// What apply brings, withholds and refuses, with real sandboxes.
import assert from "node:assert/strict";
import { existsSync, lstatSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Applied, Box, WorkspaceMode } from "@caisson/client";
import { accounts } from "../../support/daemon.ts";
import { makeProject, type Project, type Subject, sameTree, subject } from "./project.ts";

const identity = "-c user.name=agent -c user.email=agent@example.com";
const modes = ["overlay", "copy"] as const satisfies WorkspaceMode[];

for (const account of accounts()) {
  describe(`apply as ${account.name}`, { timeout: 200_000 }, () => {
    let at: Subject;
    before(async () => {
      at = await subject(account);
    });
    after(() => at[Symbol.asyncDispose]());

    /** Runs a script in a new sandbox on the project. */
    const worked = async (
      project: Project,
      script: string,
      mode: WorkspaceMode = "overlay",
    ): Promise<Box> => {
      const box = await at.client.create({ workspace: { dir: project.dir, mode } });
      const { code, stderr } = await box.run(["bash", "-ec", script], { cwd: project.dir });
      assert.equal(code, 0, stderr.text);
      return box;
    };
    const outcomes = ({ files }: Applied) =>
      Object.fromEntries(files.map(({ path, outcome }) => [path, outcome]));

    for (const mode of modes) {
      it(`brings commits, branches and refs made in ${mode} to the host`, async () => {
        using project = makeProject(
          account,
          `git init -q -b main . && echo one > file && git add . && git ${identity} commit -qm first && git branch old`,
        );
        const box = await worked(
          project,
          `echo two >> file; git ${identity} commit -qam second
           git switch -q -c topic; mkdir deep; echo three > deep/new; git add .; git ${identity} commit -qm third
           git tag v1; git branch -D old; git gc -q; echo four > deep/after; git add .; git ${identity} commit -qm fourth
           git status --porcelain`,
          mode,
        );
        const applied = await box.workspace.apply();
        assert.equal(applied.conflicts, 0);
        assert.equal(project.sh("git log --format=%s topic").trim(), "fourth\nthird\nsecond\nfirst");
        assert.equal(project.sh("git branch --format='%(refname:short)'").trim(), "main\ntopic");
        assert.equal(project.sh("git symbolic-ref --short HEAD").trim(), "topic");
        assert.equal(project.sh("git status --porcelain"), "");
        project.sh("git fsck --strict --full");
        // The host's own `git status` has written the index meanwhile; that is nobody's change.
        const more = await box.run(
          ["bash", "-ec", `echo five > five; git add .; git ${identity} commit -qm fifth`],
          {
            cwd: project.dir,
          },
        );
        assert.equal(more.code, 0, more.stderr.text);
        assert.equal((await box.workspace.apply()).conflicts, 0);
        assert.equal(project.sh("git status --porcelain"), "");
        for (const _ of ["fifth", "fourth"]) {
          const { files } = await box.workspace.undo();
          assert.deepEqual(
            files.filter(({ outcome }) => outcome !== "applied"),
            [],
          );
          assert.equal(project.sh("git status --porcelain"), "");
        }
        assert.equal(project.sh("git log --format=%s main").trim(), "first");
        project.sh("git fsck --strict --full");
        await box.delete();
      });

      it(`withholds protected files of ${mode} until each is named`, async () => {
        using project = makeProject(account, "echo kept > .envrc; git init -q .");
        const box = await worked(
          project,
          `echo new > .envrc; echo x > plain; mkdir -p .vscode .git/hooks sub/.git
           echo '#!/bin/sh' > .git/hooks/post-checkout; chmod 755 .git/hooks/post-checkout
           git config core.fsmonitor ./evil; echo {} > .vscode/settings.json; echo x > sub/.git/config
           test "$(cat .envrc)" = new`,
          mode,
        );
        const config = readFileSync(join(project.dir, ".git/config"), "utf8");
        const first = await box.workspace.apply();
        assert.deepEqual(outcomes(first), {
          ".envrc": "withheld",
          ".git/config": "withheld",
          ".git/hooks/post-checkout": "withheld",
          ".vscode/settings.json": "withheld",
          plain: "applied",
          sub: "applied",
          "sub/.git/config": "withheld",
        });
        assert.equal(readFileSync(join(project.dir, ".envrc"), "utf8"), "kept\n");
        assert.equal(readFileSync(join(project.dir, ".git/config"), "utf8"), config);
        for (const path of [".git/hooks/post-checkout", ".vscode", "sub/.git"])
          assert.ok(!existsSync(join(project.dir, path)), path);
        const globbed = await box.workspace.apply({ paths: ["**"] });
        assert.equal(globbed.applied, 0, "a pattern does not name anything");
        const named = await box.workspace.apply({ paths: [".envrc", ".vscode/settings.json"] });
        assert.equal(named.applied, 2);
        assert.equal(readFileSync(join(project.dir, ".envrc"), "utf8"), "new\n");
        await box.delete();
      });

      it(`refuses pipes and sockets of ${mode}, and brings the rest`, async () => {
        using project = makeProject(account, "echo x > file");
        const box = await worked(
          project,
          `mkfifo pipe; rm file; mkfifo file; echo y > other
           perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "sock", Listen => 1) or die'`,
          mode,
        );
        const result = outcomes(await box.workspace.apply());
        assert.deepEqual(result, { file: "refused", other: "applied", pipe: "refused", sock: "refused" });
        assert.equal(readFileSync(join(project.dir, "file"), "utf8"), "x\n");
        assert.ok(!existsSync(join(project.dir, "pipe")) && !existsSync(join(project.dir, "sock")));
        await box.delete();
      });
    }

    it("keeps the repository when a sandbox removes it or moves it away and back", async () => {
      using project = makeProject(
        account,
        `git init -q . && echo one > file && git add . && git ${identity} commit -qm first`,
      );
      const gone = await worked(project, "rm -rf .git; echo two > file");
      const result = await gone.workspace.apply();
      assert.equal(result.applied, 1);
      assert.equal(project.sh("git log --format=%s").trim(), "first");
      project.sh("git fsck --strict && git checkout -q -- file");
      const moved = await worked(
        project,
        `mv .git away; echo '[core] fsmonitor = touch /tmp/never' >> away/config; echo x > away/hooks/pre-commit; mv away .git`,
      );
      const back = await moved.workspace.apply();
      assert.equal(back.applied, 0);
      assert.ok(back.withheld >= 2);
      await Promise.all([gone.delete(), moved.delete()]);
    });

    it("writes through no link that the host has in the way, whatever was there before", async () => {
      using project = makeProject(account, "mkdir dir; echo old > dir/file");
      using outside = makeProject(account, "echo outside > file");
      const box = await worked(
        project,
        "echo new > dir/file; echo more > dir/more; mkdir -p dir/sub; echo x > dir/sub/x",
      );
      const before = outside.listEverything();
      project.sh(`mv dir real && ln -s ${outside.dir} dir`);
      const result = await box.workspace.apply();
      assert.equal(result.applied, 0, JSON.stringify(result.files));
      sameTree(outside.listEverything(), before, "nothing was written outside");
      assert.equal(readlinkSync(join(project.dir, "dir")), outside.dir);
      await box.delete();
    });

    it("leaves set-id bits behind and gives everything to the project's owner", async () => {
      using project = makeProject(account, "echo x > file; chmod 644 file");
      const box = await worked(
        project,
        `cp /bin/true tool; chmod 755 tool; chmod 4755 tool || true; mkdir made; ln -s tool made/link; echo y >> file`,
      );
      await box.workspace.apply();
      for (const path of ["tool", "made", "made/link", "file"]) {
        const { uid, gid, mode } = lstatSync(join(project.dir, path));
        assert.deepEqual([uid, gid], [account.uid, account.gid], path);
        assert.equal(mode & 0o7000, 0, path);
      }
      assert.equal(statSync(join(project.dir, "tool")).mode & 0o777, 0o755);
      await box.delete();
    });

    it("shows names as git quotes them, so that none can write a line of the patch", async () => {
      using project = makeProject(account, "echo x > plain");
      const box = await worked(
        project,
        `printf 'text\\n' > "$(printf 'sp ace')"; mkdir -p $'x\\n+++ b'; echo z > $'x\\n+++ b/z'
         printf 'text' > $'quo"te\\t\\xff'; : > empty; ln -s 'tar get' link; rm plain; ln -s x plain`,
      );
      const changes = await box.workspace.diff({ patch: true });
      const patch = changes.map((change) => change.patch).join("");
      assert.ok(!patch.split("\n").includes("+++ b"), patch);
      using copy = makeProject(account, `cp -a ${project.dir}/. . && git init -q .`);
      copy.sh(`git apply <<'PATCH'\n${Buffer.from(patch).toString("latin1")}PATCH\n`);
      assert.equal(readFileSync(join(copy.dir, "sp ace"), "utf8"), "text\n");
      assert.equal(readlinkSync(join(copy.dir, "link")), "tar get");
      assert.equal(readlinkSync(join(copy.dir, "plain")), "x");
      assert.equal(statSync(join(copy.dir, "empty")).size, 0);
      await box.delete();
    });

    it("deletes what it brought when the sandbox deletes it, however new the directories around it are", async () => {
      using project = makeProject(account, "echo one > file");
      const box = await worked(project, "mkdir -p d/e/f; touch d/a d/b d/e/a d/e/f/a");
      await box.workspace.apply();
      project.sh("echo mine > d/host");
      for (const script of [
        "rm d/a",
        "rm -rf d/e/f; mkdir d/e/f; touch d/e/f/b",
        "mv d/e d/g",
        "rm -r d/g",
      ]) {
        await box.run(["sh", "-c", script], { cwd: project.dir });
        const { stdout } = await box.run(["find", ".", "-mindepth", "1"], { cwd: project.dir });
        await box.workspace.apply();
        const inside = stdout.text.trim().split("\n");
        assert.deepEqual(
          project.sh("find . -mindepth 1").trim().split("\n").sort(),
          [...inside, "./d/host"].sort(),
          script,
        );
      }
      await box.delete();
    });

    it("does not bring a change again that the host has worked on since it was applied", async () => {
      using project = makeProject(account, "echo one > file; echo gone > gone");
      const box = await worked(project, "echo two > file; rm gone; echo new > new");
      assert.equal((await box.workspace.apply()).applied, 3);
      project.sh("echo three > file; echo back > gone; rm new");
      assert.deepEqual([...(await box.workspace.diff())], []);
      assert.equal((await box.workspace.apply()).applied, 0);
      assert.equal(readFileSync(join(project.dir, "file"), "utf8"), "three\n");
      const { files } = await box.workspace.undo();
      assert.deepEqual(
        files.filter(({ outcome }) => outcome === "conflict").map(({ path }) => path),
        ["file", "gone"],
      );
      assert.equal(readFileSync(join(project.dir, "file"), "utf8"), "three\n");
      await box.delete();
    });
  });
}
