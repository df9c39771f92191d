import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readConfigFile } from "../../../packages/daemon/src/config/files.ts";

const dir = mkdtempSync(join(tmpdir(), "caisson-project-file-"));
after(() => rmSync(dir, { recursive: true }));
const invalid = { code: "CONFIG_INVALID" };

test("a project's file that is a FIFO or leads to a device is refused at once", async () => {
  const fifo = join(dir, "fifo.yaml");
  assert.equal(spawnSync("mkfifo", [fifo]).status, 0);
  const endless = join(dir, "endless.yaml");
  symlinkSync("/dev/zero", endless);
  const before = process.memoryUsage().rss;
  // More than there are threads that wait for files.
  await Promise.all(
    Array.from({ length: 16 }, (_, at) => assert.rejects(readConfigFile(at % 2 ? fifo : endless), invalid)),
  );
  assert.ok(process.memoryUsage().rss - before < 64 << 20);
});
