// What spec/SPECIFICATION.md says without a benchmark, and what it says about benchmarks.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../support/daemon.ts";
import { documents, everything } from "./support/documents.ts";

test("the guest binary is smaller than 2 MB", () => {
  assert.ok(statSync(join(root, ".caisson/bin/caisson-guest")).size < 2_000_000);
});

test("every npm script that a document names exists", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  for (const { path, text } of documents(everything)) {
    for (const [, name] of text.matchAll(/npm run ([a-z][a-z:]*[a-z])/g)) {
      assert.ok(Object.hasOwn(scripts, name!), `${path}: npm run ${name}`);
    }
  }
});
