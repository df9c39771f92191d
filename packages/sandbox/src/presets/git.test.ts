import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { git } from "./git.ts";
import { machine, rules } from "./testing/machine.ts";

const remote = (name: string, url: string) => `[remote "${name}"]\n\turl = ${url}\n\tfetch = +refs/heads/*\n`;

test("without a repository there is nothing to reach", async () => {
  using host = machine();
  assert.deepEqual((await git(host)).hosts, []);
  assert.deepEqual((await git({ ...host, project: "" })).hosts, []);
});

test("remotes count by their protocol's port, those on disk do not", async () => {
  using host = machine({
    "project/.git/config": [
      remote("a", "https://user@code.test/x.git"),
      remote("b", "git@ssh.test:x/y.git ; comment"),
      remote("c", "ssh://git@ssh.test:2222/x"),
      remote("d", '"git://old.test/x"'),
      remote("e", "../elsewhere"),
      remote("f", "/srv/x.git"),
      remote("g", "file:///srv/x.git"),
    ].join(""),
  });
  assert.deepEqual(rules(await git(host)), [
    "code.test:443",
    "ssh.test:22",
    "ssh.test:2222",
    "old.test:9418",
  ]);
});

test("the longest `insteadOf` of user and machine is applied, includes of the user's too", async () => {
  using host = machine({
    "root/etc/gitconfig": '[url "https://short.test/"]\n\tinsteadOf = https://code.test/\n',
    "home/.gitconfig": "[include]\n\tpath = more.inc\n[include]\n\tpath = more.inc\n",
    "home/more.inc": '[url "https://mirror.test:8443/"]\n\tinsteadOf = https://code.test/team/\n',
    "project/.git/config":
      remote("origin", "https://code.test/team/x.git") + remote("o", "https://code.test/x"),
  });
  const found = await git(host);
  assert.deepEqual(rules(found), ["mirror.test:8443", "short.test:443"]);
  assert.equal(found.env.GIT_CONFIG_KEY_0, "url.https://short.test/.insteadOf");
  assert.equal(found.env.GIT_CONFIG_VALUE_0, "https://code.test/");
});

test("a hostile repository makes nothing run", async () => {
  using host = machine();
  const made = host.at("made");
  using hostile = machine({
    "project/.git/config": `[core]\n\tfsmonitor = touch ${made}\n\tsshCommand = touch ${made}\n[include]\n\tpath = /etc/passwd\n${remote("origin", `ext::touch ${made}`)}${remote("x", "https://x.test\\\n/y")}`,
  });
  assert.deepEqual(rules(await git(hostile)), ["x.test:443"]);
  assert.ok(!existsSync(made));
});

test("a work tree beside its repository has that repository's remotes", async () => {
  using host = machine({
    "main/.git/config": remote("origin", "https://code.test/x"),
    "main/.git/worktrees/w/commondir": "../..\n",
    "project/.git": "gitdir: ../main/.git/worktrees/w\n",
  });
  assert.deepEqual(rules(await git(host)), ["code.test:443"]);
});
