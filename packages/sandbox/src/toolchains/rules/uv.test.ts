import assert from "node:assert/strict";
import { test } from "node:test";
import { shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("uv: its Pythons and tools, neither its credentials nor where tools came from", () => {
  using home = new TestHome();
  home.program("tools/bin/uv");
  home.program(".local/share/uv/python/cpython-3.13/bin/python3");
  home.program(".local/share/uv/tools/ruff/bin/ruff");
  home.secret(".local/share/uv/tools/ruff/uv-receipt.toml");
  home.secret(".local/share/uv/python/cpython-3.13/pip.conf");
  const set = shown(home, "tools/bin");
  assert.deepEqual(set.binds, [
    home.path("tools/bin"),
    home.path(".local/share/uv/python"),
    home.path(".local/share/uv/tools"),
  ]);
  assert.equal(set.env.UV_PYTHON_INSTALL_DIR, home.path(".local/share/uv/python"));
});

test("uv: its Pythons come in for projects whose .venv leads to them, wherever uv itself is", () => {
  using home = new TestHome();
  home.program(".local/share/uv/python/cpython-3.13/bin/python3");
  assert.deepEqual(shown(home).binds, [home.path(".local/share/uv/python")]);
});
