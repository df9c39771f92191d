import assert from "node:assert/strict";
import { test } from "node:test";
import { cpioArchive, cpioDirectory, cpioFile } from "./cpio.ts";
import { modulesInOrder } from "./modules.ts";

test("an archive is what the kernel reads: headers of hexadecimal numbers, everything on four bytes", () => {
  const archive = cpioArchive([cpioDirectory("dev"), cpioFile("init", Buffer.from("hello"), 0o755)]);
  const names: string[] = [];
  const contents: string[] = [];
  for (let at = 0; at < archive.length; ) {
    assert.equal(archive.toString("latin1", at, at + 6), "070701");
    const field = (index: number) =>
      Number.parseInt(archive.toString("latin1", at + 6 + index * 8, at + 14 + index * 8), 16);
    const [size, nameLength] = [field(6), field(11)];
    names.push(archive.toString("utf8", at + 110, at + 110 + nameLength - 1));
    const start = Math.ceil((at + 110 + nameLength) / 4) * 4;
    contents.push(archive.toString("utf8", start, start + size));
    at = Math.ceil((start + size) / 4) * 4;
  }
  assert.deepEqual(names, ["dev", "init", "TRAILER!!!"]);
  assert.deepEqual(contents, ["", "hello", ""]);
});

test("modules are loaded after what they need, each once; what is built in is left out", () => {
  const dep =
    "kernel/a.ko: kernel/b.ko kernel/c.ko\nkernel/b.ko: kernel/c.ko\nkernel/c.ko:\nkernel/d.ko: kernel/c.ko\n";
  assert.deepEqual(modulesInOrder(dep, ["a", "d", "built_in"]), [
    "kernel/c.ko",
    "kernel/b.ko",
    "kernel/a.ko",
    "kernel/d.ko",
  ]);
});
