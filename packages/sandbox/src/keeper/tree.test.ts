import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { accounts, Bench } from "./testing.ts";

for (const account of accounts()) {
  const as = `as ${account.name}`;

  test(`a tree is removed with closed, deep and odd things in it, and nothing beside it, ${as}`, async () => {
    await using bench = new Bench(account);
    const { dir, keeper } = bench;
    bench.shell(`
      mkdir -p outside tree/closed/inner tree/work/work; echo kept > outside/file
      ln -s ../outside tree/link; ln -s /nowhere tree/dangling; ln outside/file tree/hard
      mkfifo tree/fifo; printf x > "tree/$(printf 'new\\nline')"; echo secret > tree/closed/inner/f
      chmod 000 tree/closed/inner tree/work/work tree/closed; chmod 400 tree/work
      chmod 500 tree`);
    bench.shell(`chmod 700 tree; perl -e 'chdir "tree"; for (1..500) { mkdir "d"; chdir "d" or die }'`);
    await keeper.removeTree(`${dir}/tree`);
    assert.equal(existsSync(`${dir}/tree`), false);
    assert.equal(readFileSync(`${dir}/outside/file`, "utf8"), "kept\n");
    assert.equal(await keeper.removeTree(`${dir}/tree`), 0n);
    assert.equal(await keeper.removeTree(`${dir}/nowhere/tree`), 0n);
  });

  test(`a tree is never a link itself, ${as}`, async () => {
    await using bench = new Bench(account);
    bench.shell("mkdir -p real/tree; echo kept > real/tree/file; ln -s real linked; ln -s real/tree tree");
    await assert.rejects(bench.keeper.removeTree(`${bench.dir}/tree`), { code: "INVALID_PATH" });
    await assert.rejects(bench.keeper.treeSize(`${bench.dir}/tree`), { code: "INVALID_PATH" });
    await assert.rejects(bench.keeper.removeTree("relative"), { code: "INVALID_PATH" });
    await assert.rejects(bench.keeper.removeTree("/"), { code: "INVALID_PATH" });
    assert.equal(readFileSync(`${bench.dir}/real/tree/file`, "utf8"), "kept\n");
    // The directory that it is in may be named through one.
    await bench.keeper.removeTree(`${bench.dir}/linked/tree`);
    assert.equal(existsSync(`${bench.dir}/real/tree`), false);
  });

  test(`size counts blocks once, closed directories included, ${as}`, async () => {
    await using bench = new Bench(account);
    bench.shell(`
      mkdir -p tree/closed; dd if=/dev/zero of=tree/closed/f bs=1024 count=1024 status=none
      ln tree/closed/f tree/again; truncate -s 1G tree/sparse; ln -s /usr tree/usr; chmod 000 tree/closed`);
    const { bytes, files } = await bench.keeper.treeSize(`${bench.dir}/tree`);
    // Once for the directory, the file under its two names, the sparse file and the link.
    assert.equal(files, 4n);
    assert.ok(bytes >= 1_048_576n && bytes < 1_200_000n, `${bytes}`);
    bench.shell("chmod 700 tree/closed");
  });
}
