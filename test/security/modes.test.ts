// The same attempts on the host's files in every way that a project can be attached.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { makeProject, subject } from "../e2e/workspace/project.ts";
import { accounts, temporaryDirectory } from "../support/daemon.ts";

const modes = ["overlay", "copy", "bind", "bind-write"] as const;

/** Each line tries to read the host's secret, or to write beside the project. */
function attempts(outside: string): string {
  return [
    `cat ${outside}/secret`,
    `echo x > ${outside}/secret`,
    `echo x > ${outside}/made; mkdir ${outside}/dir`,
    `ln -s ${outside}/secret link; cat link; echo x > link`,
    `ln -s ${outside} up; cat up/secret; echo x > up/made; cp up/secret stolen`,
    `ln ${outside}/secret hard && cat hard && echo x > hard`,
    `cat /proc/self/root${outside}/secret; echo x > /proc/self/root${outside}/made`,
    `cat /proc/self/cwd/../${outside.split("/").at(-1)}/secret; echo x > /proc/self/cwd/../${outside.split("/").at(-1)}/made`,
    "cat /proc/1/root/etc/shadow; cat /proc/1/environ; ls /proc/1/cwd/",
    `mkdir sub && mv sub moved && ln -s ${outside} sub && echo x > sub/made`,
    "for f in prog dir2; do touch $f; chmod 6755 $f; done; mkdir -m 6755 set; install -m 4755 /bin/true su; cp -p /bin/true t && chmod u+s t",
    "mknod null c 1 3; mknod disk b 8 0; mount -t tmpfs none .; unshare -m true",
    "for d in /root /home /var/lib /etc/ssh; do ls $d/.ssh $d/id_rsa $d/../root/.bashrc; done",
    "echo x > /etc/passwd; echo x > /usr/bin/evil; echo x > /proc/sys/kernel/core_pattern",
    "env; cat /proc/self/environ; cat /proc/self/mountinfo",
  ].join("\n");
}

for (const account of accounts()) {
  for (const mode of modes) {
    describe(`a project as ${mode}, as ${account.name}`, { timeout: 240_000 }, () => {
      test("nothing beside the project is read or written, and no bit is set that lends power", async () => {
        await using it = await subject(account);
        const outside = temporaryDirectory(account, "/tmp/caisson-outside-");
        writeFileSync(join(outside, "secret"), "canary-5a1e");
        chmodSync(join(outside, "secret"), 0o666);
        chmodSync(outside, 0o777);
        using project = makeProject(account, "echo 1 > file; mkdir dir");
        const before = spawnSync("find", [outside, "-printf", "%p %m %s %T@ %n\n"], {
          encoding: "utf8",
        }).stdout;
        const box = await it.client.create({ workspace: { dir: project.dir, mode } });
        const { stdout, stderr } = await box.run(["bash", "-c", attempts(outside)]);
        assert.doesNotMatch(`${stdout.text}${stderr.text}`, /canary-5a1e|root:[*!$]/);
        if (mode === "overlay" || mode === "copy") await box.workspace.apply();
        const after = spawnSync("find", [outside, "-printf", "%p %m %s %T@ %n\n"], {
          encoding: "utf8",
        }).stdout;
        assert.equal(after, before);
        assert.equal(readFileSync(join(outside, "secret"), "utf8"), "canary-5a1e");
        const powerful = spawnSync("find", [project.dir, "(", "-perm", "/6000", "-o", "-type", "b,c", ")"], {
          encoding: "utf8",
        });
        assert.equal(powerful.stdout, "");
        rmSync(outside, { recursive: true });
      });

      test("a socket of the host in the project is out of reach", async () => {
        await using it = await subject(account);
        using project = makeProject(account);
        let reached = 0;
        const server = createServer((socket) => {
          reached++;
          socket.end();
        }).listen(join(project.dir, "door"));
        chmodSync(join(project.dir, "door"), 0o777);
        const dial = "import socket; socket.socket(socket.AF_UNIX).connect('door')";
        try {
          const box = await it.client.create({ workspace: { dir: project.dir, mode } });
          assert.notEqual((await box.run(["python3", "-c", dial])).code, 0);
          assert.notEqual(mode, "bind-write");
        } catch (error) {
          assert.equal((error as { code?: string }).code, "WORKSPACE_REFUSED");
          assert.equal(mode, "bind-write");
        } finally {
          server.close();
        }
        assert.equal(reached, 0);
      });

      test("what is no project of its own is refused by name", async () => {
        await using it = await subject(account);
        const home = account.uid === 0 ? homedir() : `/home/${account.name}`;
        for (const dir of [
          "/",
          "/etc",
          "/proc/self",
          home,
          it.daemon.home,
          join(it.daemon.home, "sandboxes"),
        ]) {
          const refused = await it.client.create({ workspace: { dir, mode } }).catch((error) => error);
          assert.equal(refused.code, "WORKSPACE_REFUSED", `${dir}: ${refused.message}`);
          assert.match(refused.message, /^workspace\.[a-z]+: /);
        }
      });

      test("a file system mounted inside is named", async (t) => {
        if (process.getuid!() !== 0) return t.skip("only root can mount one");
        await using it = await subject(account);
        using project = makeProject(account, "mkdir nested");
        const nested = join(project.dir, "nested");
        assert.equal(spawnSync("mount", ["-t", "tmpfs", "none", nested]).status, 0);
        try {
          const refused = await it.client
            .create({ workspace: { dir: project.dir, mode } })
            .catch((error) => error);
          assert.equal(refused.code, "WORKSPACE_REFUSED", refused.message);
          assert.match(refused.message, /mounted/);
        } finally {
          spawnSync("umount", [nested]);
        }
        assert.ok(statSync(nested).isDirectory());
      });
    });
  }
}
