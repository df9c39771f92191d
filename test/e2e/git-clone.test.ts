// Repositories cloned inside sandboxes, and hostile ones on the host.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, test } from "node:test";
import { accounts, startDaemon } from "../support/daemon.ts";
import { Launcher } from "../support/launcher.ts";
import { makeProject } from "./workspace/project.ts";

for (const account of accounts()) {
  describe(`clones as ${account.name}`, { timeout: 240_000 }, () => {
    test("a repository of this machine is cloned with its branches, from a path, an address and a bundle", async () => {
      await using daemon = await startDaemon({ account });
      using project = makeProject(
        account,
        "git init -q -b main . && git config user.name A && git config user.email a@example.org && echo 1 > f && git add f && " +
          "git commit -qm first && git branch topic && git tag v1 && git bundle create -q all.bundle --all",
      );
      const caisson = new Launcher(daemon, project.dir);
      for (const source of [".", `file://${project.dir}`, "all.bundle"]) {
        const cloned = await caisson.run(["git", "clone", source, "copy"]);
        assert.equal(cloned.code, 0, cloned.err);
        const box = cloned.out.trim();
        const script = "cd copy && cat f && git branch -r && git tag && git status --short && ls /tmp";
        const seen = await caisson.run(["exec", box, "--", "sh", "-c", script]);
        assert.match(seen.out, /^1\n/);
        assert.match(seen.out, /origin\/topic\nv1\n/, source);
        assert.doesNotMatch(seen.out, /bundle/);
        await caisson.run(["rm", box]);
      }
    });

    test("nothing of a hostile repository runs on the host, and what fails leaves no sandbox", async () => {
      await using daemon = await startDaemon({ account });
      const mark = `/tmp/caisson-clone-mark-${process.pid}-${account.uid}`;
      using project = makeProject(
        account,
        "git init -q -b main . && git config user.name A && git config user.email a@example.org && echo 1 > f && git add f && git commit -qm first && " +
          `git config core.fsmonitor 'touch ${mark}; false' && git config core.pager 'touch ${mark}' && git config core.sshCommand 'touch ${mark}' && ` +
          `git config uploadpack.packObjectsHook 'touch ${mark}' && git config filter.x.clean 'touch ${mark}' && echo '* filter=x' > .gitattributes && ` +
          `printf '#!/bin/sh\\ntouch ${mark}\\n' > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout && cp .git/hooks/post-checkout .git/hooks/pre-auto-gc`,
      );
      const caisson = new Launcher(daemon, project.dir);
      assert.equal((await caisson.run(["git", "clone", "."])).code, 0);
      assert.ok(!existsSync(mark));
      const before = (await caisson.run(["ls", "--quiet"])).out;
      for (const bad of [
        "/nonexistent",
        "/etc/hostname",
        "/tmp",
        "ext::touch /tmp/x",
        "--upload-pack=touch",
      ]) {
        assert.notEqual((await caisson.run(["git", "clone", bad, "copy"])).code, 0, bad);
      }
      assert.equal((await caisson.run(["ls", "--quiet"])).out, before);
    });
  });
}
