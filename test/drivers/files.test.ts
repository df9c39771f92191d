import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, it } from "node:test";
import type { Box } from "@caisson/client";
import { refused } from "../support/errors.ts";
import { conform } from "./conform.ts";

const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of source) pieces.push(piece);
  return Buffer.concat(pieces);
}

await conform(({ box: make }) => {
  let box: Box;
  before(async () => {
    box = await make();
  });
  after(() => box.delete());
  const sh = async (script: string) => (await box.run(["sh", "-c", script])).stdout.text;

  it("writes and reads any bytes, as the command inside sees them", async () => {
    const data = randomBytes(9_000_001);
    const info = await box.files.write("/tmp/blob", data);
    assert.deepEqual([info.type, info.size, info.mode], ["file", data.length, 0o644]);
    assert.equal((await sh("sha256sum < /tmp/blob")).slice(0, 64), hash(data));
    assert.equal(hash((await box.files.read("/tmp/blob")).bytes), hash(data));
    assert.equal(hash(await collect(box.files.readStream("/tmp/blob"))), hash(data));
    const part = await box.files.read("/tmp/blob", { offset: 4_000_000, length: 70_000 });
    assert.equal(hash(part.bytes), hash(data.subarray(4_000_000, 4_070_000)));
    assert.equal((await box.files.read("/tmp/blob", { offset: data.length })).bytes.length, 0);
  });

  it("writes at the same time what each was given", async () => {
    for (let round = 0; round < 3; round++) {
      const contents = Array.from({ length: 6 }, (_, index) => randomBytes(600_000 + index));
      await Promise.all(contents.map((content, index) => box.files.write(`/tmp/each-${index}`, content)));
      const sums = (await sh("cat /tmp/each-? | sha256sum; rm /tmp/each-?")).slice(0, 64);
      assert.equal(sums, hash(Buffer.concat(contents)));
    }
  });

  it("writes and reads an empty file", async () => {
    await box.files.write("/tmp/empty", "");
    assert.equal((await box.files.read("/tmp/empty")).bytes.length, 0);
  });

  it("takes relative paths from the working directory", async () => {
    await box.files.write("here.txt", "x");
    assert.equal(await sh("cat /home/agent/here.txt"), "x");
    await refused("PATH_LEAVES_ROOT", box.files.read("../../../etc/passwd"));
  });

  it("makes parents only when asked to", async () => {
    await refused("PATH_NOT_FOUND", box.files.write("/tmp/no/such/dir", "x"));
    await box.files.write("/tmp/made/for/it", "x", { parents: true, mode: 0o600 });
    assert.equal((await box.files.stat("/tmp/made/for/it")).mode, 0o600);
  });

  it("replaces a file only if it is still the one that was seen", async () => {
    const first = await box.files.write("/tmp/etag", "one", { ifMatch: "-" });
    await refused("ETAG_MISMATCH", box.files.write("/tmp/etag", "two", { ifMatch: "-" }));
    const second = await box.files.write("/tmp/etag", "two", { ifMatch: first.etag });
    assert.notEqual(second.etag, first.etag);
    await refused("ETAG_MISMATCH", box.files.write("/tmp/etag", "three", { ifMatch: first.etag }));
    await box.files.write("/tmp/etag", "three", { ifMatch: "*" });
    await refused("ETAG_MISMATCH", box.files.write("/tmp/none", "x", { ifMatch: "*" }));
    assert.equal(await sh("cat /tmp/etag"), "three");
  });

  it("replaces a file at once, never half", async () => {
    await box.files.write("/tmp/atomic", "a".repeat(200_000));
    const watching = box.run(["perl", "-e", reader]);
    for (let i = 0; i < 20; i++) await box.files.write("/tmp/atomic", (i % 2 ? "a" : "b").repeat(200_000));
    await box.files.write("/tmp/stop", "");
    assert.equal((await watching).stdout.text, "whole\n");
  });

  it("describes links without following them unless asked to", async () => {
    await sh("ln -sf /tmp/target /tmp/link; echo hello > /tmp/target; ln -sf /nowhere /tmp/dangling");
    const link = await box.files.stat("/tmp/link");
    assert.deepEqual([link.type, link.target], ["symlink", "/tmp/target"]);
    const followed = await box.files.stat("/tmp/link", { follow: true });
    assert.deepEqual([followed.type, followed.size], ["file", 6]);
    await refused("PATH_NOT_FOUND", box.files.stat("/tmp/dangling", { follow: true }));
  });

  it("lists a directory, and everything below it when asked to", async () => {
    await sh(
      "mkdir -p /tmp/tree/a/b && touch /tmp/tree/x /tmp/tree/a/y /tmp/tree/a/b/z && mkfifo /tmp/tree/pipe",
    );
    const flat = await box.files.list("/tmp/tree");
    assert.deepEqual(flat.map(({ path, type }) => `${path} ${type}`).sort(), [
      "a directory",
      "pipe special",
      "x file",
    ]);
    const deep = await box.files.list("/tmp/tree", { recursive: true });
    assert.deepEqual(deep.map(({ path }) => path).sort(), ["a", "a/b", "a/b/z", "a/y", "pipe", "x"]);
    assert.equal(deep.truncated, false);
    await refused("NOT_A_DIRECTORY", box.files.list("/tmp/tree/x"));
  });

  it("carries names that are not UTF-8", async () => {
    await sh("mkdir -p /tmp/raw && touch \"$(printf '/tmp/raw/\\377\\376')\"");
    const [file] = await box.files.list("/tmp/raw");
    assert.deepEqual(Buffer.from(file!.pathBytes), Buffer.from([0xff, 0xfe]));
  });

  it("makes, moves and removes", async () => {
    await box.files.mkdir("/tmp/d1/d2", { parents: true });
    await refused("PATH_EXISTS", box.files.mkdir("/tmp/d1"));
    await box.files.write("/tmp/d1/f", "1");
    await box.files.write("/tmp/d1/g", "2");
    await refused("PATH_EXISTS", box.files.move("/tmp/d1/f", "/tmp/d1/g"));
    await box.files.move("/tmp/d1/f", "/tmp/d1/g", { overwrite: true });
    assert.equal(await sh("cd /tmp/d1; cat g; echo *"), "1d2 g\n");
    await refused("DIRECTORY_NOT_EMPTY", box.files.remove("/tmp/d1"));
    await box.files.remove("/tmp/d1", { recursive: true });
    await refused("PATH_NOT_FOUND", box.files.stat("/tmp/d1"));
    await refused("PATH_NOT_FOUND", box.files.remove("/tmp/d1"));
  });

  it("neither reads nor replaces what is not a regular file", async () => {
    await sh("mkfifo /tmp/fifo; mkdir -p /tmp/dir");
    await refused("NOT_A_FILE", box.files.read("/tmp/fifo"));
    await refused("NOT_A_FILE", box.files.read("/tmp/dir"));
    await refused("NOT_A_FILE", box.files.write("/tmp/dir", "x"));
  });

  it("refuses paths that are no paths", async () => {
    for (const path of ["", "a\0b", "a\nb", `/${"x".repeat(256)}`, "/x".repeat(3000)]) {
      await refused("INVALID_PATH", box.files.stat(path));
    }
  });

  it("writes nothing where nothing may be written", async () => {
    const answer = await box.files.write("/usr/bin/owned", "x").catch((error) => error);
    assert.ok(["PATH_DENIED", "READ_ONLY"].includes(answer.code), answer.code ?? "it was written");
  });

  it("tells of every change below a watched directory", async () => {
    await box.files.mkdir("/tmp/watched");
    const seen: string[] = [];
    for await (const { kind, path } of box.files.watch("/tmp/watched", { recursive: true })) {
      if (kind === "ready") void sh("mkdir /tmp/watched/sub");
      // What comes and goes in a directory before its birth is known, nobody can tell.
      if (kind === "created" && path === "sub")
        void sh("cd /tmp/watched; echo 1 > sub/f; echo 2 >> sub/f; rm sub/f; touch last");
      seen.push(`${kind} ${path}`);
      if (path === "last") break;
    }
    assert.ok(seen.includes("created sub"), seen.join());
    assert.ok(seen.includes("removed sub/f"), seen.join());
  });

  it("packs a tree and unpacks it again, with modes and links", async () => {
    await sh(
      "mkdir -p /tmp/pack/deep && echo body > /tmp/pack/deep/f && chmod 750 /tmp/pack/deep/f && ln -s deep/f /tmp/pack/l",
    );
    const tar = await collect(box.files.download("/tmp/pack"));
    await box.files.mkdir("/tmp/unpacked");
    const { files } = await box.files.upload("/tmp/unpacked", tar);
    assert.ok(files >= 2, String(files));
    const found = await sh(
      "cd /tmp/unpacked && cd $(dirname $(find . -name l)) && cat l && find deep/f -printf '%m\\n' && readlink l",
    );
    assert.equal(found, "body\n750\ndeep/f\n");
  });

  it("serves file calls while hostile code swaps links, and never leaves the sandbox", async () => {
    await sh("mkdir -p /tmp/race/real && echo inside > /tmp/race/real/passwd");
    await using _swapper = await box.exec(["perl", "-e", swapper]);
    for (let i = 0; i < 150; i++) {
      const answer = await box.files.read("/tmp/race/dir/passwd").catch((error) => error);
      if (answer instanceof Error) continue;
      assert.ok(
        /^inside\n$|^root:x:0:0:root:\/root:\/bin\/sh\nagent/.test(answer.text),
        answer.text.slice(0, 200),
      );
    }
  });
});

const reader = `
  until (-e "/tmp/stop") {
    open(my $f, "<", "/tmp/atomic") or die "gone"; local $/; my $t = <$f>;
    die length $t unless $t eq "a" x 200000 or $t eq "b" x 200000;
  }
  print "whole\\n";`;

const swapper = `
  for (;;) {
    symlink "/tmp/race/real", "/tmp/race/new"; rename "/tmp/race/new", "/tmp/race/dir";
    symlink "/../../../etc", "/tmp/race/new"; rename "/tmp/race/new", "/tmp/race/dir";
  }`;
