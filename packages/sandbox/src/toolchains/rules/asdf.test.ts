import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("asdf: installed programs stand in for its shims, in the developer's versions or the newest", () => {
  using home = new TestHome();
  const installs = ".asdf/installs";
  home.program(".asdf/shims/node");
  for (const version of ["18.2.0", "20.10.0", "20.9.0"])
    home.program(`${installs}/nodejs/${version}/bin/node`);
  for (const version of ["1.9.1", "1.10.0"]) home.program(`${installs}/golang/${version}/go/bin/go`);
  home.file(".tool-versions", "nodejs 18.2.0 # the old one\nruby ../../..\n");
  home.secret(`${installs}/nodejs/18.2.0/etc/npmrc`);
  home.program(`${installs}/rust/1.80/bin/cargo`);
  home.secret(`${installs}/rust/1.80/credentials.toml`);
  home.secret(".asdf/plugins/private/.git/config");
  const set = shown(home, ".asdf/shims");
  assert.deepEqual(set.binds, [home.path(installs)]);
  assert.deepEqual(pathOf(set).slice(1), [
    home.path(`${installs}/golang/1.10.0/go/bin`),
    home.path(`${installs}/nodejs/18.2.0/bin`),
    home.path(`${installs}/rust/1.80/bin`),
  ]);
});
