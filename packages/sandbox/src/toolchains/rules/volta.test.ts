import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("volta: the programs of the default versions stand in for its shims", () => {
  using home = new TestHome();
  const image = ".volta/tools/image";
  home.program(".volta/bin/volta-shim");
  home.link(".volta/bin/node", "volta-shim");
  home.program(`${image}/node/22.1.0/bin/node`);
  home.program(`${image}/node/18.0.0/bin/node`);
  home.program(`${image}/yarn/4.1.0/bin/yarn`);
  home.program(`${image}/packages/typescript/bin/tsc`);
  home.secret(`${image}/node/22.1.0/etc/npmrc`);
  home.file(".volta/tools/user/platform.json", '{"node":{"runtime":"22.1.0","npm":null},"yarn":"4.1.0"}');
  const set = shown(home, ".volta/bin");
  assert.deepEqual(set.binds, [home.path(image)]);
  assert.deepEqual(
    pathOf(set).slice(1),
    ["packages/typescript", "yarn/4.1.0", "node/22.1.0"].map((name) => home.path(`${image}/${name}/bin`)),
  );
});

test("volta: a file of versions that is none leaves it out", () => {
  using home = new TestHome();
  home.program(".volta/tools/image/node/22.1.0/bin/node");
  home.file(".volta/tools/user/platform.json", "[");
  home.program(".volta/bin/volta");
  assert.deepEqual(shown(home, ".volta/bin").binds, []);
});
