import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("local-bin: programs, where links lead, and packages of `pip install --user`", () => {
  using home = new TestHome();
  home.program(".local/bin/tool");
  home.program(".local/share/pipx/venvs/black/bin/black");
  home.secret(".local/share/pipx/venvs/black/pip.conf");
  home.link(".local/bin/black", home.path(".local/share/pipx/venvs/black/bin/black"));
  home.file(".local/lib/python3.11/site-packages/pytest.py", "");
  home.secret(".local/lib/other/secret");
  const set = shown(home, ".local/bin");
  assert.deepEqual(set.binds, [
    home.path(".local/bin"),
    home.path(".local/lib/python3.11"),
    home.path(".local/share/pipx/venvs"),
  ]);
  assert.equal(set.env.PYTHONUSERBASE, home.path(".local"));
  assert.deepEqual(pathOf(set).slice(1), [home.path(".local/bin")]);
});

test("local-bin: a directory of scripts in the home", () => {
  using home = new TestHome();
  home.program("bin/script");
  assert.deepEqual(shown(home, "bin").binds, [home.path("bin")]);
  assert.deepEqual(shown(home).binds, []);
});

test("local-bin: a link to somewhere else brings nothing in", () => {
  using home = new TestHome();
  home.program(".local/bin/tool");
  home.link(".local/bin/keys", home.path(".ssh/id_ed25519"));
  home.link(".local/bin/ring", home.path(".local/share/keyrings/login.keyring"));
  assert.deepEqual(shown(home, ".local/bin").binds, [home.path(".local/bin")]);
});

test("local-bin: agents where their own installers put them, and nothing of their settings", () => {
  using home = new TestHome();
  const codex = ".codex/packages/standalone";
  home.program(".local/share/claude/versions/2.1.325");
  home.link(".local/bin/claude", home.path(".local/share/claude/versions/2.1.325"));
  home.program(`${codex}/releases/0.166.0/bin/codex`);
  home.link(`${codex}/current`, home.path(`${codex}/releases/0.166.0`));
  home.link(".local/bin/codex", home.path(`${codex}/current/bin/codex`));
  home.secret(".codex/config.toml");
  home.secret(".codex/packages/secret");
  home.secret(".local/share/claude/secret");
  assert.deepEqual(shown(home, ".local/bin").binds, [
    home.path(".local/bin"),
    home.path(".local/share/claude/versions"),
    home.path(codex),
  ]);
});

test("local-bin: a place of agents' programs that is a link to secrets brings nothing in", () => {
  using home = new TestHome();
  home.file(".codex/packages/readme", "");
  home.link(".codex/packages/standalone", home.path(".ssh"));
  home.link(".local/bin/codex", home.path(".codex/packages/standalone/id_ed25519"));
  assert.deepEqual(shown(home, ".local/bin").binds, [home.path(".local/bin")]);
});
