import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { blockBytes, type Entry, formatHeader, padding } from "./header.ts";
import { pack } from "./pack.ts";
import { unpack } from "./unpack.ts";

const scratch = mkdtempSync(join(tmpdir(), "caisson-tar-"));
after(() => rmSync(scratch, { recursive: true }));
let count = 0;
const fresh = () => {
  const dir = join(scratch, String(++count));
  mkdirSync(dir);
  return dir;
};

async function gather(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}

async function* inPieces(bytes: Buffer, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function archive(...members: (Partial<Entry> & { name: string; content?: string })[]): Buffer {
  const parts = members.flatMap(({ content = "", ...entry }) => {
    const size = Buffer.byteLength(content);
    const header = formatHeader({ type: "file", mode: 0o644, modified: 0, target: "", size, ...entry });
    return [header, Buffer.from(content), padding(size)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

const deep = `${"d".repeat(90)}/${"e".repeat(90)}/long`;

function project(): string {
  const dir = fresh();
  mkdirSync(join(dir, "src", deep, ".."), { recursive: true });
  writeFileSync(join(dir, "src", deep), "deep");
  writeFileSync(join(dir, "src/run.sh"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(dir, "src/big"), Buffer.alloc(1_000_000, 7));
  symlinkSync("run.sh", join(dir, "src/link"));
  return join(dir, "src");
}

test("what is packed is understood by tar, long names too", async () => {
  const bytes = await gather(pack(project(), "src"));
  const dir = fresh();
  execFileSync("tar", ["x", "-C", dir], { input: bytes });
  assert.equal(readFileSync(join(dir, "src", deep), "utf8"), "deep");
  assert.equal(lstatSync(join(dir, "src/run.sh")).mode & 0o777, 0o755);
  assert.equal(readlinkSync(join(dir, "src/link")), "run.sh");
  assert.equal(readFileSync(join(dir, "src/big")).length, 1_000_000);
});

test("what tar packs is unpacked, in every dialect", async () => {
  const source = project();
  for (const format of ["gnu", "pax", "ustar"]) {
    const bytes = execFileSync("tar", ["c", `--format=${format}`, "-C", source, "."], { maxBuffer: 1 << 26 });
    const dir = fresh();
    const done = await unpack(inPieces(bytes), dir);
    assert.equal(done.files, 3, format);
    assert.equal(readFileSync(join(dir, deep), "utf8"), "deep", format);
    assert.equal(lstatSync(join(dir, "run.sh")).mode & 0o777, 0o755, format);
    assert.equal(readlinkSync(join(dir, "link")), "run.sh", format);
  }
});

test("names that lead outside are refused, and nothing outside is written", async () => {
  for (const name of ["../evil", "/tmp/caisson-evil", "a/../../evil", "a/..", ".."]) {
    const dir = fresh();
    await assert.rejects(unpack(inPieces(archive({ name, content: "x" })), join(dir, "in")), {
      code: "HOSTILE_ARCHIVE",
    });
    assert.equal(existsSync(join(dir, "evil")), false);
  }
  assert.equal(existsSync("/tmp/caisson-evil"), false);
});

test("nothing is written through a link, neither the archive's nor one that was there", async () => {
  const dir = fresh();
  const outside = fresh();
  const through = archive(
    { name: "out", type: "symlink", target: outside },
    { name: "out/evil", content: "x" },
  );
  const done = await unpack(inPieces(through), dir).catch((error) => error);
  assert.equal(existsSync(join(outside, "evil")), false);
  assert.ok(done);
  const there = fresh();
  symlinkSync(outside, join(there, "sub"));
  await assert.rejects(unpack(inPieces(archive({ name: "sub/evil", content: "x" })), there), {
    code: "NOT_A_DIRECTORY",
  });
  writeFileSync(join(outside, "victim"), "safe");
  symlinkSync(join(outside, "victim"), join(there, "file"));
  await unpack(inPieces(archive({ name: "file", content: "new" })), there);
  assert.equal(readFileSync(join(outside, "victim"), "utf8"), "safe");
  assert.equal(readFileSync(join(there, "file"), "utf8"), "new");
});

test("links that leave, hard links and devices are left out and told", async () => {
  const dir = fresh();
  const bytes = archive(
    { name: "abs", type: "symlink", target: "/etc/passwd" },
    { name: "up", type: "symlink", target: "../../x" },
    { name: "d/fine", type: "symlink", target: "../f" },
    { name: "f", content: "f" },
  );
  const hard = archive({ name: "hard", type: "file", target: "f" });
  hard.write("1", 156);
  hard.fill(32, 148, 156);
  const sum = hard.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  hard.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  const done = await unpack(inPieces(bytes), dir);
  assert.deepEqual(done.skipped.length, 2);
  assert.equal(readlinkSync(join(dir, "d/fine")), "../f");
  assert.equal((await unpack(inPieces(hard), dir)).skipped.length, 1);
});

test("duplicates, set-uid bits and damage do no harm", async () => {
  const dir = fresh();
  await assert.rejects(
    unpack(inPieces(archive({ name: "a", content: "1" }, { name: "./a", content: "2" })), dir),
    {
      code: "HOSTILE_ARCHIVE",
    },
  );
  await unpack(inPieces(archive({ name: "s", content: "x", mode: 0o6755 })), dir);
  assert.equal(lstatSync(join(dir, "s")).mode & 0o7777, 0o755);
  const whole = archive({ name: "cut", content: "x".repeat(2000) });
  await assert.rejects(unpack(inPieces(whole.subarray(0, 1000)), dir), { code: "HOSTILE_ARCHIVE" });
  const flipped = Buffer.from(whole);
  flipped[3]! ^= 1;
  await assert.rejects(unpack(inPieces(flipped), dir), { code: "HOSTILE_ARCHIVE" });
});
