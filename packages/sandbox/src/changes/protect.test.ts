import assert from "node:assert/strict";
import { test } from "node:test";
import { type Judged, Protection } from "./protect.ts";

type Now = Judged["now"] | "gone";

function withheld(path: string, what: Now = "file", inProject: string[] = []): string | undefined {
  const now = what === "gone" ? undefined : what;
  return new Protection({ projectDir: "/p", hasInProject: (other) => inProject.includes(other) }).withheld({
    path,
    now,
  });
}

test("what commits and branches are made of passes", () => {
  for (const path of [
    ".git/HEAD",
    ".git/index",
    ".git/objects/ab/cdef",
    ".git/objects/pack/pack-1.idx",
    ".git/refs/heads/topic/one",
    ".git/logs/HEAD",
    ".git/packed-refs",
    "src/index.ts",
    "a.git/config",
    ".github/workflows/ci.yml",
  ]) {
    assert.equal(withheld(path), undefined, path);
  }
});

test("what would run code on the host is withheld, at any depth and in any case", () => {
  for (const path of [
    ".git/hooks/pre-commit",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/objects/info/alternates",
    ".git/info/attributes",
    ".git/modules/x/config",
    ".git/worktrees/w/commondir",
    ".GIT/config",
    ".git",
    ".git/rebase-merge/git-rebase-todo",
    "vendor/lib/.git/config",
    "vendor/lib/.git",
    ".gitmodules",
    ".bashrc",
    "home/.zshenv",
    ".mcp.json",
    ".claude/settings.json",
    ".vscode/tasks.json",
    "packages/a/.envrc",
    ".husky/pre-commit",
    "caisson.yaml",
  ]) {
    assert.notEqual(withheld(path), undefined, path);
  }
});

test("a repository's directory passes, a link or file in its place does not", () => {
  assert.equal(withheld(".git", "directory"), undefined);
  assert.equal(withheld(".git/objects/ab", "directory"), undefined);
  for (const path of [".git", ".git/HEAD", ".git/objects", ".git/refs/heads"]) {
    assert.notEqual(withheld(path, "other"), undefined, path);
  }
  assert.notEqual(withheld(".git/hooks", "directory"), undefined);
});

test("a branch may be deleted, the repository and its objects may not", () => {
  assert.equal(withheld(".git/refs/heads/topic", "gone"), undefined);
  assert.notEqual(withheld(".git/objects/ab/cd", "gone"), undefined);
  const judge = new Protection({ projectDir: "/p", hasInProject: () => true });
  for (const path of [".git", ".git/HEAD", ".git/refs/heads/main", ".git/packed-refs"]) {
    assert.notEqual(judge.withheld({ path, now: undefined }), undefined, path);
  }
});

test("a directory does not become a repository, and one that is has its settings withheld", () => {
  assert.notEqual(withheld("sub/HEAD"), undefined);
  assert.equal(withheld("sub/config"), undefined);
  for (const path of ["sub/config", "sub/hooks/post-checkout", "sub/commondir"]) {
    assert.notEqual(withheld(path, "file", ["sub/HEAD"]), undefined, path);
  }
  assert.equal(withheld("sub/config", "gone", ["sub/HEAD"]), undefined);
});

test("links that lead out of the project are withheld, others and those to programs of the system pass", () => {
  const link = (path: string, target: string) =>
    new Protection({ projectDir: "/p", hasInProject: () => false }).withheld({ path, now: "link", target });
  for (const target of ["b", "../x", "./../x/../y", "/p/x", "/p", "/usr/bin/python3", "/opt/node/bin/node"])
    assert.equal(link("a/link", target), undefined, target);
  for (const target of [
    "../..",
    "../../x",
    "/etc/passwd",
    "/home/me/.ssh/config",
    "/pq",
    "/p/../x",
    "/usr/../etc/x",
  ])
    assert.match(link("a/link", target) ?? "", /leads out/, target);
});

test("where settings say that hooks are, nothing is applied, nor led there elsewhere", () => {
  const judge = (change: Judged, hooks: string[]) =>
    new Protection({ projectDir: "/p", hasInProject: () => false, hooks }).withheld(change);
  const withHooks = (path: string, ...hooks: string[]) => judge({ path, now: "file" }, hooks);
  assert.match(judge({ path: "tools", now: "link", target: "evil" }, ["tools/hooks"]) ?? "", /hooks/);
  assert.equal(judge({ path: "tools", now: "directory" }, ["tools/hooks"]), undefined);
  assert.match(withHooks("pre-commit", ".") ?? "", /hooks/);
  assert.equal(withHooks("src/main.c", "."), undefined);
  assert.match(withHooks("tools/hooks/pre-commit", "tools/hooks") ?? "", /hooks/);
  assert.match(withHooks("tools/hooks/pre-commit", "/p/tools/./hooks/") ?? "", /hooks/);
  assert.equal(withHooks("tools/hooks2/x", "tools/hooks"), undefined);
  assert.equal(withHooks("tools/x", "/elsewhere", "../out"), undefined);
});
