import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("go: the tree that it was unpacked to and the programs of `go install`, not the module cache", () => {
  using home = new TestHome();
  home.program("sdk/go1.26.1/bin/go");
  home.file("sdk/go1.26.1/src/runtime/runtime.go", "");
  home.program("go/bin/staticcheck");
  home.secret("go/pkg/mod/private@v1/secret.go");
  const set = shown(home, "sdk/go1.26.1/bin", "go/bin");
  assert.deepEqual(set.binds, [home.path("sdk/go1.26.1"), home.path("go/bin")]);
  assert.equal(set.env.GOPATH, "/home/agent/go");
  assert.deepEqual(pathOf(set).slice(1), [
    "/home/agent/go/bin",
    home.path("sdk/go1.26.1/bin"),
    home.path("go/bin"),
  ]);
});
