import assert from "node:assert/strict";
import { test } from "node:test";
import { Toolchains } from "./cache.ts";
import { findToolchains } from "./find.ts";
import { pathOf, shown } from "./testing/check.ts";
import { TestHome } from "./testing/home.ts";

test("without anything on the PATH there is nothing to show", () => {
  using home = new TestHome();
  assert.deepEqual(shown(home).binds, []);
});

test("a PATH into a place of secrets, the home itself or above it opens nothing", () => {
  using home = new TestHome();
  for (const place of [
    ".ssh",
    ".config/tool",
    ".aws",
    ".docker/bin",
    ".",
    ".claude/local",
    ".local/share/keyrings",
  ])
    for (const name of ["node", "cargo", "uv", "go"]) home.program(`${place}/${name}`);
  for (const entry of [
    ".ssh",
    ".config/tool",
    ".aws",
    ".docker/bin",
    ".claude/local",
    ".local/share/keyrings",
  ])
    assert.deepEqual(shown(home, entry).binds, [], entry);
  assert.deepEqual(shown(home, home.dir).binds, []);
  assert.deepEqual(shown(home, "/", "/tmp", "/etc", "/proc/self/root", "relative/bin", "").binds, []);
});

test("a link out of a toolchain's place does not open where it leads", () => {
  using home = new TestHome();
  home.program(".ssh/rustup");
  home.program(".ssh/cargo");
  home.link(".cargo/bin", home.path(".ssh"));
  assert.deepEqual(shown(home, ".cargo/bin").binds, []);
});

test("the daemon's own directory is never shown, nor one around it", () => {
  using home = new TestHome();
  home.program("data/tools/cargo");
  const developer = { home: home.dir, path: [home.path("data/tools")] };
  assert.deepEqual(findToolchains(developer, home.path("data")).binds, []);
  assert.deepEqual(findToolchains(developer, home.path("data/tools/own")).binds, []);
});

test("the developer's order stays, with the system's directories where he has them", () => {
  using home = new TestHome();
  home.program("rust/bin/cargo");
  home.program(".local/bin/tool");
  const path = [".local/bin", "/usr/local/bin", "rust/bin"];
  assert.deepEqual(pathOf(shown(home, ...path)), [
    "/home/agent/.local/bin",
    home.path(".local/bin"),
    "/usr/local/bin",
    "/home/agent/.cargo/bin",
    home.path("rust/bin"),
  ]);
});

test("a result is kept until something that it was made from changes", async () => {
  using home = new TestHome();
  home.program("rust/bin/cargo");
  const toolchains = new Toolchains("/nonexistent", { path: "", home: "" });
  const surroundings = { path: `${home.path("rust/bin")}/:/usr/bin`, home: `${home.dir}/` };
  const first = await toolchains.find(surroundings);
  assert.deepEqual(first?.binds, [home.path("rust/bin")]);
  assert.equal(await toolchains.find(surroundings), first);
  home.program("rust/bin/uv");
  assert.notEqual(await toolchains.find(surroundings), first);
  home.program(".local/share/uv/python/cpython/bin/python");
  assert.equal((await toolchains.find(surroundings))?.binds.length, 2);
});

test("callers without a home directory have none", async () => {
  const toolchains = new Toolchains("/nonexistent", { path: "", home: "" });
  assert.equal(await toolchains.find(), undefined);
  assert.equal(await toolchains.find({ path: "/opt/x/bin", home: "/" }), undefined);
});
