import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("npm-global: programs and packages of a prefix without a Node", () => {
  using home = new TestHome();
  home.program(".npm-global/lib/node_modules/agent/cli.js");
  home.link(".npm-global/bin/agent", "../lib/node_modules/agent/cli.js");
  home.secret(".npm-global/etc/npmrc");
  home.secret(".npm-global/lib/node_modules/npm/npmrc");
  home.secret(".npm-global/lib/other/secret");
  const set = shown(home, ".npm-global/bin");
  assert.deepEqual(set.names, ["npm-global"]);
  assert.deepEqual(set.binds, [home.path(".npm-global/bin"), home.path(".npm-global/lib/node_modules")]);
  assert.deepEqual(pathOf(set).slice(1), [home.path(".npm-global/bin")]);
});

test("npm-global: a directory of programs alone is none", () => {
  using home = new TestHome();
  home.program("tools/bin/agent");
  assert.deepEqual(shown(home, "tools/bin").binds, []);
});
