import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("rustup: proxies and toolchains, never the rest of ~/.cargo", () => {
  using home = new TestHome();
  home.program(".cargo/bin/rustup");
  home.link(".cargo/bin/cargo", "rustup");
  home.program(".rustup/toolchains/stable/bin/cargo");
  home.file(".rustup/settings.toml", 'default_toolchain = "stable"');
  home.secret(".cargo/registry/cache/private.crate");
  const set = shown(home, ".cargo/bin");
  assert.deepEqual(set.binds, [home.path(".cargo/bin"), home.path(".rustup")]);
  assert.equal(set.env.RUSTUP_HOME, home.path(".rustup"));
  assert.equal(set.env.CARGO_HOME, "/home/agent/.cargo");
  assert.deepEqual(pathOf(set).slice(1), ["/home/agent/.cargo/bin", home.path(".cargo/bin")]);
});

test("rustup: a cargo without it comes alone", () => {
  using home = new TestHome();
  home.program("rust/bin/cargo");
  const set = shown(home, "rust/bin");
  assert.deepEqual(set.binds, [home.path("rust/bin")]);
  assert.equal(set.env.RUSTUP_HOME, undefined);
});
