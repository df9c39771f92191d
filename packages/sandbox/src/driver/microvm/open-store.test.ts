import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openStore } from "./open-store.ts";

test("a store's images are a directory or lead to one; anything else is an error that says so", async (t) => {
  const base = mkdtempSync(join(tmpdir(), "caisson-store-"));
  t.after(() => rmSync(base, { recursive: true }));
  const store = (name: string) => {
    mkdirSync(join(base, name));
    return join(base, name);
  };
  await openStore(join(base, "new"));
  assert.ok(statSync(join(base, "new/images")).isDirectory());
  symlinkSync("../new/images", join(store("shared"), "images"));
  await openStore(join(base, "shared"));
  for (const [name, target] of [
    ["dangling", "../nowhere"],
    ["deep", "/nowhere/at/all"],
    ["loop", "images"],
  ] as const) {
    symlinkSync(target, join(store(name), "images"));
    await assert.rejects(openStore(join(base, name)), {
      code: "SANDBOX_FAILED",
      message: /microvm\.store.* is a link that leads nowhere/,
    });
  }
  writeFileSync(join(store("file"), "images"), "");
  await assert.rejects(openStore(join(base, "file")), { code: "SANDBOX_FAILED", message: /EEXIST/ });
});
