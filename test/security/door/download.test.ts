import assert from "node:assert/strict";
import { lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { formatHeader } from "../../../packages/cli/src/tar/header.ts";
import { unpack } from "../../../packages/cli/src/tar/unpack.ts";

const dir = mkdtempSync(join(tmpdir(), "caisson-download-"));
after(() => rmSync(dir, { recursive: true }));

async function* archive(links: [name: string, target: string][]): AsyncGenerator<Uint8Array> {
  for (const [name, target] of links)
    yield formatHeader({ name, type: "symlink", size: 0, mode: 0o777, modified: 0, target });
  yield Buffer.alloc(1024);
}

test("links that lead out only together are left out", async () => {
  const root = join(dir, "root");
  mkdirSync(root);
  writeFileSync(join(dir, "secret"), "the host's\n");
  const { skipped } = await unpack(
    archive([
      ["a/b/up", "../.."],
      ["out", "a/b/up/../secret"],
      ["fine", "a/b/up/a"],
    ]),
    root,
  );
  assert.deepEqual(skipped, ["out: a link that leaves the directory"]);
  assert.equal(lstatSync(join(root, "out"), { throwIfNoEntry: false }), undefined);
  assert.equal(realpathSync(join(root, "fine")), join(realpathSync(root), "a"));
});
