import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("bun: itself and its global packages, not what projects downloaded", () => {
  using home = new TestHome();
  home.program(".bun/bin/bun");
  home.program(".bun/install/global/node_modules/agent/cli.js");
  home.link(".bun/bin/agent", "../install/global/node_modules/agent/cli.js");
  home.secret(".bun/install/global/bunfig.toml");
  home.secret(".bun/install/cache/private/index.js");
  const set = shown(home, ".bun/bin");
  assert.deepEqual(set.binds, [home.path(".bun/bin"), home.path(".bun/install/global/node_modules")]);
  assert.deepEqual(pathOf(set).slice(1), [home.path(".bun/bin")]);
});
