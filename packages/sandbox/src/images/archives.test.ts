// Layers and archives that are broken, cut off, lie or never end: each ends with an error of the table.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { CaissonError } from "@caisson/contract";
import { blobsOfArchive, blobsOfDirectory } from "./blobs.ts";
import { checked, uncompressed } from "./layer-stream.ts";
import { indexArchive } from "./tar-index.ts";
import { noteSparse, piecesOfExtended, type SaidSparse } from "./tar-sparse.ts";

const scratch = mkdtempSync(join(tmpdir(), "caisson-images-"));
after(() => rmSync(scratch, { recursive: true }));
const invalid = (words: RegExp) => (error: unknown) =>
  error instanceof CaissonError && error.code === "IMAGE_INVALID" && words.test(error.message);
const digest = (bytes: Buffer) => hash("sha256", bytes);

async function* pieces(bytes: Buffer, size = 7): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of source) all.push(piece);
  return Buffer.concat(all);
}

describe("the content of layers", () => {
  const content = Buffer.from("content of a layer ".repeat(1000));

  it("is the same plain and compressed, in pieces of any size", async () => {
    for (const bytes of [content, gzipSync(content), zstdCompressSync(content)])
      for (const size of [1, 3, 4096])
        assert.ok((await collect(uncompressed(pieces(bytes, size)))).equals(content));
    assert.equal((await collect(uncompressed(pieces(Buffer.alloc(0))))).length, 0);
  });

  it("is refused where it is compressed wrongly or cut off", async () => {
    const broken = gzipSync(content).fill(0xee, 12, 24);
    await assert.rejects(collect(uncompressed(pieces(broken))), invalid(/compressed wrongly/));
    for (const whole of [gzipSync(content), zstdCompressSync(content)])
      await assert.rejects(
        collect(uncompressed(pieces(whole.subarray(0, -3)))),
        invalid(/compressed wrongly/),
      );
  });

  it("ends as soon as it is too long, whatever it would unfold to", async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20));
    let taken = 0;
    const bounded = checked(
      uncompressed(pieces(bomb, 4096)),
      undefined,
      1 << 20,
      (bytes) => (taken += bytes),
    );
    await assert.rejects(collect(bounded), { code: "TOO_LARGE" });
    assert.ok(taken <= 1 << 20);
  });

  it("is held to its digest", async () => {
    assert.ok((await collect(checked(pieces(content), digest(content), 1 << 20))).equals(content));
    await assert.rejects(collect(checked(pieces(content), "0".repeat(64), 1 << 20)), invalid(/digest/));
  });
});

describe("archives of images", () => {
  const make = (name: string, ...options: string[]) => {
    const path = join(scratch, `${name}.tar`);
    const made = spawnSync("tar", [...options, "-cf", path, "-C", join(scratch, "tree"), "."], {
      encoding: "utf8",
    });
    assert.equal(made.status, 0, made.stderr);
    return path;
  };
  const index = async (path: string) => {
    await using file = await open(path);
    return await indexArchive(file);
  };
  const long = `${"d".repeat(90)}/${"f".repeat(120)}`;
  mkdirSync(join(scratch, "tree", "d".repeat(90)), { recursive: true });
  writeFileSync(join(scratch, "tree", long), "long");
  writeFileSync(join(scratch, "tree/plain"), "plain");

  it("are read in place, with long names in every form", async () => {
    for (const form of ["gnu", "pax", "ustar"]) {
      const blobs = await blobsOfArchive(
        make(form, `--format=${form}`, ...(form === "ustar" ? ["--exclude=f*"] : [])),
      );
      assert.equal(String(await blobs.read("plain")), "plain");
      if (form !== "ustar") assert.equal(String(await blobs.read(long)), "long");
      await assert.rejects(blobs.read("../plain"), invalid(/it has no/));
      await blobs.close();
    }
  });

  const sparseForms = [
    ["--format=gnu"],
    ["--format=pax", "--sparse-version=0.0"],
    ["--format=pax", "--sparse-version=0.1"],
    ["--format=pax", "--sparse-version=1.0"],
  ];

  it("may have holes, in every form", async () => {
    const path = join(scratch, "tree/sparse");
    writeFileSync(path, "begin");
    truncateSync(path, 10 << 20);
    // More pieces than a header has room for.
    const file = await open(path, "r+");
    for (let at = 1; at < 40; at++) await file.write(`piece ${at}`, at * 200_000);
    await file.close();
    const whole = await readFile(path);
    for (const form of sparseForms) {
      const archive = make("sparse", "--sparse", ...form);
      assert.ok(statSync(archive).size < 1 << 20, form.join(" "));
      const blobs = await blobsOfArchive(archive);
      assert.ok((await collect(blobs.stream("sparse"))).equals(whole), form.join(" "));
      assert.equal(String(await blobs.read("plain")), "plain");
      await blobs.close();
    }
    truncateSync(path, 0);
    truncateSync(path, 3 << 20);
    for (const form of sparseForms) {
      const blobs = await blobsOfArchive(make("hollow", "--sparse", ...form));
      assert.ok((await collect(blobs.stream("sparse"))).equals(Buffer.alloc(3 << 20)), form.join(" "));
      await blobs.close();
    }
    rmSync(path);
  });

  it("whose holes are told wrongly are refused", async () => {
    const said = (...lines: [string, string][]) => {
      const sparse: SaidSparse = { map: [] };
      for (const [key, value] of lines) noteSparse(sparse, `GNU.sparse.${key}`, value);
      return piecesOfExtended(sparse, 0, 10, async () => Buffer.alloc(512, "9\n"));
    };
    const size: [string, string] = ["size", "100"];
    assert.deepEqual((await said(size, ["map", "5,10"])).pieces, [{ at: 5, offset: 0, size: 10 }]);
    for (const map of ["5", "5,9", "5,11", "95,10", "5,6,8,4", "5,5,3,5", "a,b", "-1,10"])
      await assert.rejects(async () => said(size, ["map", map]), invalid(/told wrongly/), map);
    await assert.rejects(async () => said(["map", "5,10"]), invalid(/told wrongly/));
    await assert.rejects(async () => said(size, ["major", "1"], ["minor", "0"]), invalid(/told wrongly/));
  });

  it("that lie, or are none, are refused", async () => {
    const good = await readFile(make("good"));
    const at = join(scratch, "bad.tar");
    const variant = (change: (bytes: Buffer) => unknown) => {
      const copy = Buffer.from(good);
      const changed = change(copy);
      writeFileSync(at, Buffer.isBuffer(changed) ? changed : copy);
      return index(at);
    };
    await assert.rejects(
      variant((bytes) => bytes.write("x", 0)),
      invalid(/checksum/),
    );
    await assert.rejects(
      variant((bytes) => bytes.write("nonsense", 257)),
      invalid(/not a tar/),
    );
    const last = good.lastIndexOf("plain");
    await assert.rejects(
      variant((bytes) => bytes.subarray(0, last)),
      invalid(/cut off/),
    );
    await assert.rejects(
      variant(() => Buffer.alloc(600, 1)),
      invalid(/not a tar/),
    );
    assert.equal((await variant(() => Buffer.alloc(1024))).size, 0);
  });

  it("survive any bytes: an index or an error of the table", async () => {
    const good = await readFile(make("base", "--format=pax"));
    const at = join(scratch, "fuzzed.tar");
    for (let round = 0; round < 300; round++) {
      const copy = Buffer.from(good.subarray(0, 8192));
      for (let changes = 0; changes < 3; changes++)
        copy[(round * 7919 + changes * 104729) % copy.length] = (round * 31 + changes) & 255;
      for (let block = 0; block < copy.length; block += 512) mend(copy.subarray(block, block + 512));
      writeFileSync(at, copy);
      await index(at).catch((error) => assert.equal(error.code, "IMAGE_INVALID", String(error)));
    }
  });
});

/** Makes a header's checksum right again. */
function mend(header: Buffer): void {
  if (header.toString("latin1", 257, 262) !== "ustar") return;
  header.fill(" ", 148, 156);
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
}

describe("a layout in a directory", () => {
  it("is read without following links, and a FIFO does not hang it", async () => {
    const dir = mkdtempSync(join(scratch, "layout-"));
    spawnSync("sh", ["-c", "ln -s /etc/passwd link; mkfifo fifo; mkdir dir; echo x > file"], { cwd: dir });
    const blobs = blobsOfDirectory(dir);
    assert.equal(String(await blobs.read("file")), "x\n");
    for (const name of ["link", "fifo", "dir", "nothing"]) {
      assert.equal(await blobs.has(name), false, name);
      await assert.rejects(blobs.read(name), invalid(/it has no|is not a file/));
    }
    truncateSync(join(dir, "file"), 5 << 20);
    await assert.rejects(blobs.read("file"), invalid(/too large/));
  });
});
