import assert from "node:assert/strict";
import { test } from "node:test";
import { Protection } from "../../../packages/sandbox/src/changes/protect.ts";

const withheld = (path: string) =>
  new Protection({ projectDir: "/p", hasInProject: () => false }).withheld({ path, now: "file" });

test("what names the programs that a developer's tools then run is withheld", () => {
  for (const path of [
    // `cargo --version` runs the program that it names.
    "rust-toolchain.toml",
    "crates/a/rust-toolchain",
    ".cargo/config.toml",
    ".yarn/releases/yarn-4.cjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".mise.toml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".githooks/pre-commit",
    ".zed/tasks.json",
    ".gdbinit",
    ".bash_aliases",
    ".windsurf/hooks.json",
  ]) {
    assert.notEqual(withheld(path), undefined, path);
  }
  for (const path of ["Cargo.toml", "src/cargo/config.rs", "package.json", "yarn.lock"]) {
    assert.equal(withheld(path), undefined, path);
  }
});
