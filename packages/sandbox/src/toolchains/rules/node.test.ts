import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("node: one that was unpacked somewhere", () => {
  using home = new TestHome();
  home.program("tools/node-v24/bin/node");
  home.file("tools/node-v24/include/node/node.h", "");
  home.secret("tools/node-v24/etc/npmrc");
  const set = shown(home, "tools/node-v24/bin");
  assert.deepEqual(set.binds, [home.path("tools/node-v24/bin"), home.path("tools/node-v24/include")]);
  assert.deepEqual(pathOf(set).slice(1), [home.path("tools/node-v24/bin")]);
});

test("node: what a link on the PATH leads to", () => {
  using home = new TestHome();
  home.program("tools/node-v24/bin/node");
  home.link("links/node", home.path("tools/node-v24/bin/node"));
  const set = shown(home, "links");
  assert.deepEqual(set.binds, [home.path("tools/node-v24/bin")]);
  assert.deepEqual(pathOf(set).slice(1), [home.path("tools/node-v24/bin")]);
});

test("node: the system's own needs nothing", () => {
  using home = new TestHome();
  assert.deepEqual(
    shown(home).names.filter((name) => name === "node"),
    [],
  );
});
