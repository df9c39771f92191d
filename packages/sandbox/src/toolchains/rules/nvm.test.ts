import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("nvm: programs, libraries and headers of the version in use, and nothing of its configuration", () => {
  using home = new TestHome();
  const prefix = ".nvm/versions/node/v22.1.0";
  home.program(`${prefix}/bin/node`);
  home.file(`${prefix}/lib/node_modules/npm/package.json`, "{}");
  home.secret(`${prefix}/lib/node_modules/npm/npmrc`);
  home.secret(`${prefix}/etc/npmrc`);
  home.program(".nvm/versions/node/v18.0.0/bin/node");
  const set = shown(home, `${prefix}/bin`);
  assert.deepEqual(set.binds, [home.path(`${prefix}/bin`), home.path(`${prefix}/lib`)]);
  assert.deepEqual(pathOf(set), ["/home/agent/.local/bin", home.path(`${prefix}/bin`)]);
  assert.equal(set.env.npm_config_prefix, "/home/agent/.local");
});

test("nvm: a version that is not on the PATH does not come in", () => {
  using home = new TestHome();
  home.program(".nvm/versions/node/v22.1.0/bin/node");
  assert.deepEqual(shown(home).binds, []);
});
