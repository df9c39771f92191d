// The same attempts on the host's files in every way that a project can be attached, and in every tier.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { it } from "node:test";
import type { WorkspaceMode } from "@caisson/client";
import { conform } from "../drivers/conform.ts";
import { makeProject } from "../e2e/workspace/project.ts";
import { temporaryDirectory } from "../support/daemon.ts";
import { type Member, tarOf } from "../support/oci-image.ts";
import { onOwnMount } from "../support/own-mount.ts";

/** Where nothing is said, a project travels as a copy: there are no mounts to hand in. */
const triedModes: Record<string, WorkspaceMode[]> = {
  bubblewrap: ["overlay", "copy", "bind", "bind-write"],
  docker: ["overlay", "bind-write"],
};

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

/** Members that an archive must not have: it is refused whole. */
function hostileArchives(outside: string): Record<string, Member[]> {
  const good = { name: "good", content: "good" };
  return {
    "a name with `..`": [good, { name: "../../up", content: "x" }],
    "an absolute name": [good, { name: join(outside, "made"), content: "x" }],
    "a link out, and a file through it": [
      good,
      { kind: "2", name: "door", target: outside },
      { name: "door/made", content: "x" },
    ],
    "a hard link out": [good, { kind: "1", name: "hard", target: join(outside, "secret") }],
    "a device": [good, { kind: "3", name: "disk" }],
    "a FIFO": [good, { kind: "6", name: "fifo" }],
    "a set-uid program": [good, { name: "su", mode: 0o4755, content: "x" }],
    "a name twice": [good, { name: "good", content: "again" }],
  };
}

/** What would act on the host later; free inside. */
const later =
  "mkdir -p .git/hooks .vscode .claude sub/.git; for f in .git/hooks/pre-commit .git/config .git/commondir .gitmodules .bashrc .mcp.json " +
  ".claude/settings.json .vscode/tasks.json sub/.git/config .envrc; do echo evil-later > $f || true; done";

await conform(({ driver, account, daemon, box }) => {
  const tried = triedModes[driver] ?? ["copy"];
  for (const mode of tried) {
    it(`nothing beside a project as ${mode} is read or written, nothing powerful or acting on the host is left, and no secret is seen`, async () => {
      const outside = temporaryDirectory(account, "caisson-outside-");
      writeFileSync(join(outside, "secret"), "canary-5a1e");
      chmodSync(join(outside, "secret"), 0o666);
      chmodSync(outside, 0o777);
      using project = makeProject(account, "echo 1 > file; mkdir dir; git init -q .");
      const look = () =>
        spawnSync("find", [outside, "-printf", "%p %m %s %T@ %n\n"], { encoding: "utf8" }).stdout;
      const before = look();
      const sandbox = await box({ workspace: { dir: project.dir, mode } });
      const { stdout, stderr } = await sandbox.run(["bash", "-c", attempts(outside)]);
      assert.doesNotMatch(`${stdout.text}${stderr.text}`, /canary-|root:[*!$]/);
      const into = mode === "bind" ? "/tmp" : project.dir;
      await sandbox.files.upload(join(into, "unpacked"), tarOf([{ name: "good", content: "good" }]));
      for (const [what, members] of Object.entries(hostileArchives(outside))) {
        const place = join(into, `unpacked-${members.at(-1)!.kind ?? "0"}`);
        const upload = sandbox.files.upload(place, tarOf(members));
        await assert.rejects(upload, { code: "HOSTILE_ARCHIVE" }, what);
        await assert.rejects(sandbox.files.stat(place), { code: "PATH_NOT_FOUND" }, what);
      }
      if (mode === "overlay" || mode === "copy") {
        await sandbox.run(["bash", "-c", later]);
        await sandbox.workspace.apply();
        const passed = spawnSync("grep", ["-rl", "evil-later", project.dir], { encoding: "utf8" }).stdout;
        assert.equal(passed, "");
      }
      await sandbox.delete();
      assert.equal(look(), before);
      assert.equal(readFileSync(join(outside, "secret"), "utf8"), "canary-5a1e");
      const powerful = spawnSync("find", [project.dir, "(", "-perm", "/6000", "-o", "-type", "b,c", ")"], {
        encoding: "utf8",
      });
      assert.equal(powerful.stdout, "");
      rmSync(outside, { recursive: true });
    });

    // What travels brings no sockets.
    if (!triedModes[driver]) continue;
    it(`a socket of the host in a project as ${mode} is out of reach`, async () => {
      using project = makeProject(account);
      let reached = 0;
      const server = createServer((socket) => {
        reached++;
        socket.end();
      }).listen(join(project.dir, "door"));
      chmodSync(join(project.dir, "door"), 0o777);
      const dial = "import socket; socket.socket(socket.AF_UNIX).connect('door')";
      try {
        const sandbox = await box({ workspace: { dir: project.dir, mode } });
        assert.notEqual((await sandbox.run(["python3", "-c", dial])).code, 0);
        await sandbox.delete();
        assert.notEqual(mode, "bind-write");
      } catch (error) {
        assert.equal((error as { code?: string }).code, "WORKSPACE_REFUSED");
        assert.equal(mode, "bind-write");
      } finally {
        server.close();
      }
      assert.equal(reached, 0);
    });
  }

  it("what is no project of its own is refused by name, in every mode that there is", async () => {
    for (const mode of tried)
      for (const dir of [
        "/",
        "/etc",
        "/proc/self",
        account.home,
        daemon.home,
        join(daemon.home, "sandboxes"),
      ]) {
        const refused = await box({ workspace: { dir, mode } }).catch((error) => error);
        assert.equal(refused.code, "WORKSPACE_REFUSED", `${mode} ${dir}: ${refused.message}`);
        assert.match(refused.message, /^workspace\.[a-z]+: /);
      }
  });

  it("a file system mounted inside is named, in every mode that there is", async (t) => {
    const options = { file: import.meta.filename, size: "1m", env: { CAISSON_TEST_DRIVERS: driver } };
    // Without root, it is mounted in a namespace that other engines know nothing of.
    if (process.getuid!() !== 0 && driver !== "bubblewrap") return t.skip("only root can mount one for it");
    await onOwnMount(t, options, async (mounted) => {
      const dir = dirname(mounted);
      chownSync(dir, account.uid, account.gid);
      for (const mode of tried) {
        const refused = await box({ workspace: { dir, mode } }).catch((error) => error);
        assert.equal(refused.code, "WORKSPACE_REFUSED", refused.message);
        assert.match(refused.message, /mounted/);
      }
    });
  });
});
