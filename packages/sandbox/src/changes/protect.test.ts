import assert from "node:assert/strict";
import { test } from "node:test";
import { withheld } from "./protect.ts";

test("what commits and branches are made of passes", () => {
  for (const path of [
    ".git",
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
