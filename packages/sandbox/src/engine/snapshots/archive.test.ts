import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { hashFiles } from "./archive.ts";

test("a hash tells where bytes are among zeros, how many there are, and in which file", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-archive-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const hashOf = async (files: Record<string, Buffer>) => {
    rmSync(dir, { recursive: true });
    mkdirOf(dir, files);
    return (await hashFiles(dir, "words")).hash;
  };
  const MiB = 1024 * 1024;
  const page = Buffer.alloc(4096, 7);
  const at = (place: number, size = 3 * MiB) => {
    const bytes = Buffer.alloc(size);
    page.copy(bytes, place);
    return bytes;
  };
  const different = [
    { memory: at(0) },
    { memory: at(4096) },
    { memory: at(MiB) },
    { memory: at(2 * MiB) },
    { memory: at(0, 3 * MiB + 1) },
    { memory: Buffer.alloc(3 * MiB) },
    { memory: Buffer.alloc(0) },
    { other: at(0) },
    { memory: at(0), other: Buffer.alloc(0) },
    { memory: Buffer.alloc(0), other: at(0) },
  ];
  const hashes: string[] = [];
  for (const files of different) hashes.push(await hashOf(files as Record<string, Buffer>));
  assert.equal(new Set(hashes).size, different.length);
  assert.equal(await hashOf({ memory: at(MiB) }), hashes[2], "the same bytes have the same hash");
  // Whether zeros are written or a hole.
  writeFileSync(join(dir, "memory"), at(MiB).subarray(0, MiB + 4096));
  truncateSync(join(dir, "memory"), 3 * MiB);
  assert.equal((await hashFiles(dir, "words")).hash, hashes[2]);
  assert.notEqual((await hashFiles(dir, "other words")).hash, hashes[2]);
});

function mkdirOf(dir: string, files: Record<string, Buffer>): void {
  mkdirSync(dir);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, name), content);
}
