import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("fnm: the installation that the shell's link leads to", () => {
  using home = new TestHome();
  const prefix = ".local/share/fnm/node-versions/v22.1.0/installation";
  home.program(`${prefix}/bin/node`);
  home.secret(`${prefix}/etc/npmrc`);
  home.link("run/fnm_multishells/7_8", home.path(prefix));
  const set = shown(home, "run/fnm_multishells/7_8/bin");
  assert.deepEqual(set.binds, [home.path(`${prefix}/bin`)]);
  assert.deepEqual(pathOf(set).slice(1), [home.path(`${prefix}/bin`)]);
  assert.ok(set.names.includes("fnm"));
});
