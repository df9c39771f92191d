import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { buildingPlace, keepTemplate, nameOfSize } from "./keep-template.ts";

test("a template that is whole takes its place; old ones go, those that others are making stay", async (t) => {
  const templates = mkdtempSync(join(tmpdir(), "caisson-templates-"));
  t.after(() => rmSync(templates, { recursive: true }));
  const directory = join(templates, "new");
  const [living, dead] = [`other.${process.ppid}`, "other.4194305"];
  for (const name of ["old", living, dead]) mkdirSync(join(templates, name));
  const make = (content: string) => {
    mkdirSync(buildingPlace(directory));
    writeFileSync(join(buildingPlace(directory), content), "");
  };
  make("first");
  await keepTemplate(directory);
  assert.deepEqual(readdirSync(templates).sort(), ["new", living].sort());
  make("second");
  await keepTemplate(directory);
  assert.deepEqual(readdirSync(directory), ["first"], "who was quicker is right");
  assert.deepEqual(readdirSync(templates).sort(), ["new", living].sort());
});

test("of several that may stay, the one that was used longest ago goes first, and unfinished ones in any case", async (t) => {
  const templates = mkdtempSync(join(tmpdir(), "caisson-templates-"));
  t.after(() => rmSync(templates, { recursive: true }));
  for (const [index, name] of ["oldest", "older", "newer", "other.4194305"].entries()) {
    mkdirSync(join(templates, name));
    utimesSync(join(templates, name), 1000 + index, 1000 + index);
  }
  const directory = join(templates, "new");
  mkdirSync(buildingPlace(directory));
  await keepTemplate(directory, 3);
  assert.deepEqual(readdirSync(templates).sort(), ["new", "newer", "older"]);
});

test("of each size there is one, and of other sizes those that were used last", async (t) => {
  const templates = mkdtempSync(join(tmpdir(), "caisson-templates-"));
  t.after(() => rmSync(templates, { recursive: true }));
  const GiB = 1024 ** 3;
  const living = `${nameOfSize(4 * GiB, "other")}.${process.ppid}`;
  const before = [nameOfSize(8 * GiB, "a"), nameOfSize(16 * GiB, "b"), nameOfSize(2 * GiB, "c")];
  for (const [index, name] of [...before, nameOfSize(4 * GiB, "of-an-older-host"), living].entries()) {
    mkdirSync(join(templates, name));
    utimesSync(join(templates, name), 1000 + index, 1000 + index);
  }
  const directory = join(templates, nameOfSize(4 * GiB, "new"));
  mkdirSync(buildingPlace(directory));
  await keepTemplate(directory, 3);
  assert.deepEqual(readdirSync(templates).sort(), ["16384-b", "2048-c", "4096-new", living].sort());
});
