import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { lookBeside } from "./beside.ts";
import { BesideStamp } from "./beside-stamp.ts";

function makeTree(t: { after(act: () => void): void }): string {
  const tree = realpathSync(mkdtempSync(join(tmpdir(), "caisson-beside-")));
  t.after(() => rmSync(tree, { recursive: true }));
  mkdirSync(join(tree, "lib/deep"), { recursive: true });
  writeFileSync(join(tree, "lib/deep/file"), "1");
  return tree;
}

test("a change anywhere in what is shown is seen, and so is another place for it", async (t) => {
  const tree = makeTree(t);
  const link = `${tree}/link`;
  symlinkSync("lib", link);
  const stampOf = async (...paths: string[]) => (await lookBeside(paths)).fingerprint;
  const before = await stampOf(`${tree}/lib`);
  assert.equal(await stampOf(`${tree}/lib`), before);
  assert.notEqual(await stampOf(link), before, "the same files elsewhere");
  const file = await stampOf(`${tree}/lib/deep/file`);
  writeFileSync(join(tree, "lib/deep/file"), "22");
  assert.notEqual(await stampOf(`${tree}/lib`), before);
  assert.notEqual(await stampOf(`${tree}/lib/deep/file`), file);
  await assert.rejects(lookBeside([`${tree}/nowhere`]), { code: "ENOENT" });
});

test("it is looked at once in a while, and again at once where looking failed", async (t) => {
  const tree = makeTree(t);
  const stamp = new BesideStamp();
  const paths = [`${tree}/lib`];
  const first = await stamp.look(paths, 0);
  writeFileSync(join(tree, "lib/other"), "");
  assert.equal(await stamp.look(paths, 4999), first);
  assert.notEqual((await stamp.look(paths, 5000)).fingerprint, first.fingerprint);
  const missing = [`${tree}/later`];
  await assert.rejects(stamp.look(missing, 6000));
  mkdirSync(missing[0]!);
  await stamp.look(missing, 6001);
});
