import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { canary, TestHome } from "../testing/home.ts";

const installs = ".local/share/mise/installs";

test("mise: what `mise activate` puts on the PATH stays as it is", () => {
  using home = new TestHome();
  home.program(`${installs}/node/22.1.0/bin/node`);
  home.link(`${installs}/node/22`, "./22.1.0");
  home.secret(`${installs}/node/22.1.0/etc/npmrc`);
  const set = shown(home, `${installs}/node/22/bin`);
  assert.deepEqual(set.binds, [home.path(installs)]);
  assert.ok(pathOf(set).includes(home.path(`${installs}/node/22/bin`)));
});

test("mise: programs stand in for shims, and nothing of its configuration comes in", () => {
  using home = new TestHome();
  home.program(`${installs}/node/20.1.0/bin/node`);
  home.program(`${installs}/node/22.1.0/bin/node`);
  home.program(`${installs}/python/3.12.1/bin/python`);
  home.program(".local/share/mise/shims/node");
  home.file(".config/mise/config.toml", `[env]\nTOKEN = "${canary}"\n[tools]\nnode = "20.1.0"\n`);
  const set = shown(home, ".local/share/mise/shims");
  assert.deepEqual(pathOf(set).slice(1), [
    home.path(`${installs}/node/20.1.0/bin`),
    home.path(`${installs}/python/3.12.1/bin`),
  ]);
  assert.ok(!JSON.stringify(set).includes(canary));
});
