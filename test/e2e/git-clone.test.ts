// Repositories cloned inside sandboxes, and hostile ones on the host.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, test } from "node:test";
import { startNameServer } from "../../packages/sandbox/src/egress/testing/name-server.ts";
import { accounts, startDaemon } from "../support/daemon.ts";
import { startGitServer } from "../support/git-server.ts";
import { Launcher } from "../support/launcher.ts";
import { Seat } from "../support/seat.ts";
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

    test("a repository on the network is cloned through the sandbox's own rules, with progress, and committed to as whom it was told", async () => {
      using project = makeProject(
        account,
        "git init -q -b main team && cd team && for i in $(seq 300); do echo $i > f$i; done && git add . && " +
          "git -c user.name=A -c user.email=a@example.org commit -qm first && git tag v1 && cd .. && git clone -q --bare team team.git",
      );
      await using server = await startGitServer(project.dir);
      const dns = await startNameServer();
      dns.set("code.example.test", ["127.0.0.1"]);
      try {
        await using daemon = await startDaemon({
          account,
          env: { CAISSON_NETWORK_DNS_SERVERS: dns.address },
        });
        const url = `http://code.example.test:${server.port}/team.git`;
        const refused = await new Launcher(daemon).run(["git", "clone", url]);
        assert.equal(refused.code, 128, refused.err);
        const allow = ["code.example.test", "127.0.0.1"].flatMap((host) => [
          "--allow",
          `${host}:${server.port}`,
        ]);
        const who = ["--git-name", "An Agent", "--git-email", "agent@example.org"];
        using seat = new Seat(daemon, ["git", "clone", "--session", "work", ...allow, ...who, url]);
        assert.equal(await seat.code, 0, seat.text());
        assert.match(seat.text(), /Receiving objects: 100% \(\d+\/\d+\)/);
        const script =
          "cd team && git tag && ls | wc -l && echo 2 > f1 && git commit -qam second && git log -1 --format='%an <%ae>'";
        const inside = await new Launcher(daemon).run(["exec", "work", "--", "sh", "-c", script]);
        assert.equal(inside.out, "v1\n300\nAn Agent <agent@example.org>\n", inside.err);
        const shallow = await new Launcher(daemon).run([
          "git",
          "clone",
          "--session",
          "work",
          "--depth",
          "1",
          "--branch",
          "v1",
          url,
          "again",
        ]);
        assert.equal(shallow.code, 0, shallow.err);
      } finally {
        dns.close();
      }
    });
  });
}
