import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { onOwnMount } from "../../../test/support/own-mount.ts";
import { accounts, Bench } from "../src/keeper/testing.ts";

test("removal does not go into another file system", (t) =>
  onOwnMount(t, { file: import.meta.filename, size: "1m" }, async (mounted) => {
    await using bench = new Bench(accounts()[0]!);
    const tree = dirname(mounted);
    mkdirSync(join(tree, "other"));
    writeFileSync(join(mounted, "file"), "kept\n");
    await assert.rejects(bench.keeper.removeTree(tree), { code: "STORAGE_FAILED" });
    assert.equal(readFileSync(join(mounted, "file"), "utf8"), "kept\n");
    assert.equal(existsSync(join(tree, "other")), false);
  }));
