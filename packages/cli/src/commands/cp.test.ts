import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Cli } from "../testing/cli.ts";
import { remotePart } from "./cp.ts";

const scratch = mkdtempSync(join(tmpdir(), "caisson-cp-"));
after(() => rmSync(scratch, { recursive: true }));

test("the side that is a sandbox's is recognised", () => {
  assert.deepEqual(remotePart("work:/tmp/x"), { box: "work", path: "/tmp/x" });
  assert.deepEqual(remotePart("session:work:a:b"), { box: "session:work", path: "a:b" });
  assert.deepEqual(remotePart("work:"), { box: "work", path: "." });
  assert.equal(remotePart("./a:b"), undefined);
  assert.equal(remotePart("/a:b"), undefined);
  assert.equal(remotePart("-"), undefined);
});

test("files go in and come out with their bytes and modes", async () => {
  const cli = new Cli();
  await cli.run(["create", "-s", "work"]);
  const options = { cwd: scratch, files: { [join(scratch, "in")]: "content" } };
  writeFileSync(join(scratch, "in"), "content", { mode: 0o750 });
  assert.equal((await cli.run(["cp", "in", "work:/"], options)).code, 0);
  assert.match((await cli.run(["files", "ls", "work", "/"])).io.out, /^-0750 +7 B +in\n$/);
  assert.equal((await cli.run(["cp", "work:/in", "out"], options)).code, 0);
  assert.equal(readFileSync(join(scratch, "out"), "utf8"), "content");
  assert.equal(statSync(join(scratch, "out")).mode & 0o777, 0o750);
  mkdirSync(join(scratch, "dir"));
  await cli.run(["cp", "work:/in", "dir"], options);
  assert.equal(readFileSync(join(scratch, "dir/in"), "utf8"), "content");
});

test("directories go as tar, and come out as they went", async () => {
  const cli = new Cli();
  await cli.run(["create", "-s", "work"]);
  mkdirSync(join(scratch, "tree/sub"), { recursive: true });
  writeFileSync(join(scratch, "tree/sub/f"), "x");
  const { code, io } = await cli.run(["cp", "--json", "tree", "work:/"], { cwd: scratch });
  assert.equal(code, 0);
  assert.equal((io.json as { files: number }).files, 1);
  await cli.run(["files", "mkdir", "work", "/back"]);
  const files = [...cli.daemon.files.values()][0]!;
  files.put("/back#tar", files.get("/#tar").data, 0);
  assert.equal((await cli.run(["cp", "work:/back", "."], { cwd: scratch })).code, 0);
  assert.equal(readFileSync(join(scratch, "back/tree/sub/f"), "utf8"), "x");
  const stream = await cli.run(["cp", "work:/back", "-"]);
  assert.deepEqual(stream.io.outBytes, Buffer.from(files.get("/back#tar").data));
  await cli.run(["cp", "-", "work:/again"], { stdin: stream.io.outBytes });
  assert.deepEqual(Buffer.from(files.get("/again#tar").data), stream.io.outBytes);
});

test("what makes no sense is refused", async () => {
  const cli = new Cli();
  await cli.run(["create", "-s", "work"]);
  const code = async (...words: string[]) =>
    (await cli.run(["cp", ...words], { cwd: scratch, terminals: ["stdout"] })).code;
  assert.equal(await code("a", "b"), 2);
  assert.equal(await code("work:a", "work:b"), 2);
  assert.equal(await code("missing", "work:/"), 2);
  assert.equal(await code("work:/", "-"), 2);
  assert.equal(await code("work:/none", "x"), 1);
});
