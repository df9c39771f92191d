import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { keepNewest, removeUnfinished } from "./erofs.ts";

function folderWith(t: { after(act: () => void): void }, ...names: string[]): string {
  const dir = mkdtempSync(join(tmpdir(), "caisson-disks-"));
  t.after(() => rmSync(dir, { recursive: true }));
  for (const [index, name] of names.entries()) {
    writeFileSync(join(dir, name), "");
    utimesSync(join(dir, name), 1000 + index, 1000 + index);
  }
  return dir;
}

test("what a daemon left unfinished goes; what another is making, and what is whole, stays", async (t) => {
  const gone = ["a.erofs.4194305", "b.erofs.4194305.paths"];
  const stays = ["a.erofs", `c.erofs.${process.pid}`, "initrd.cpio"];
  const dir = folderWith(t, ...gone, ...stays);
  await removeUnfinished(dir);
  assert.deepEqual(readdirSync(dir).sort(), stays.sort());
});

test("of a kind, those that were used last stay", async (t) => {
  const dir = folderWith(t, "kind-1", "kind-2", "other", "kind-3");
  await keepNewest(dir, /^kind-/, 2);
  assert.deepEqual(readdirSync(dir).sort(), ["kind-2", "kind-3", "other"]);
});
