// What spec/SPECIFICATION.md says without a benchmark, and what it says about benchmarks.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../support/daemon.ts";
import { documents, everything } from "./support/documents.ts";

test("the guest binary is smaller than 2 MB", () => {
  const path = join(root, ".caisson/bin/caisson-guest");
  // Rust of a distribution can only link glibc, whose own part is 0.8 MB; releases and rustup's builds have musl.
  const withGlibc = readFileSync(path).includes("GNU C Library");
  assert.ok(statSync(path).size < (withGlibc ? 2_800_000 : 2_000_000));
});

test("every npm script that a document names exists", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  for (const { path, text } of documents(everything)) {
    for (const [, name] of text.matchAll(/npm run ([a-z][a-z:]*[a-z])/g)) {
      assert.ok(Object.hasOwn(scripts, name!), `${path}: npm run ${name}`);
    }
  }
});
