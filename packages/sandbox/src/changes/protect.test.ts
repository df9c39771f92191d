import assert from "node:assert/strict";
import { test } from "node:test";
import { type Judged, Protection } from "./protect.ts";

type Now = Judged["now"] | "gone";

function withheld(path: string, what: Now = "file", inProject: string[] = []): string | undefined {
  const now = what === "gone" ? undefined : what;
  return new Protection((other) => inProject.includes(other)).withheld({ path, now });
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
  const judge = new Protection(() => true);
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
