import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

function pyenvIn(home: TestHome): void {
  home.program(".pyenv/libexec/pyenv");
  home.program(".pyenv/shims/python");
  home.program(".pyenv/bin/pyenv");
  home.program(".pyenv/versions/3.12.1/bin/python");
  home.file(".pyenv/version", "3.12.1\n");
}

test("pyenv: shims and versions, without any version's pip.conf", () => {
  using home = new TestHome();
  pyenvIn(home);
  home.secret(".pyenv/versions/3.12.1/pip.conf");
  home.secret(".pyenv/versions/3.12.1/envs/work/pip.conf");
  const set = shown(home, ".pyenv/shims", ".pyenv/bin");
  assert.deepEqual(set.binds, [home.path(".pyenv")]);
  assert.deepEqual(set.env.PYENV_ROOT, home.path(".pyenv"));
  assert.deepEqual(pathOf(set).slice(1), [home.path(".pyenv/shims"), home.path(".pyenv/bin")]);
  assert.equal(set.covers.length, 2);
});

test("pyenv: a version on the PATH without shims", () => {
  using home = new TestHome();
  pyenvIn(home);
  const set = shown(home, ".pyenv/versions/3.12.1/bin");
  assert.deepEqual(pathOf(set).slice(1), [home.path(".pyenv/versions/3.12.1/bin")]);
});
