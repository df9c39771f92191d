// A sandbox that still runs makes something else of a file between the moment it is judged and the moment it is applied.
import assert from "node:assert/strict";
import { lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { applyChanges } from "../../../packages/sandbox/src/changes/index.ts";
import { root } from "../../support/daemon.ts";

const guest = process.env.CAISSON_GUEST ?? join(root, ".caisson/bin/caisson-guest");
const dir = mkdtempSync(join(tmpdir(), "caisson-race-"));
after(() => rmSync(dir, { recursive: true }));

/** Puts a file and a link in turn at one place, as fast as it can. */
const swapper = `
  const { renameSync, symlinkSync, writeFileSync } = require("node:fs");
  const { workerData: { place, spare } } = require("node:worker_threads");
  for (let round = 0; ; round++) {
    writeFileSync(spare, String(round));
    renameSync(spare, place);
    symlinkSync("/outside", spare);
    renameSync(spare, place);
  }
`;

test("a link never takes the place of the file that was judged", async () => {
  const [projectDir, layer] = [join(dir, "project"), join(dir, "layer")];
  for (const path of [join(projectDir, ".git/logs"), join(layer, "upper/.git/logs")])
    mkdirSync(path, { recursive: true });
  const place = join(layer, "upper/.git/logs/HEAD");
  writeFileSync(place, "");
  const workerData = { place, spare: join(layer, "spare") };
  await using _worker = new Worker(swapper, { eval: true, workerData });
  const at = {
    guest,
    projectDir,
    dir: layer,
    isCopy: false,
    attachedAtMs: Date.now() + 3_600_000,
    uid: 0,
    gid: 0,
  };
  for (let round = 0; round < 40; round++) {
    // It may fail, since nothing stands still.
    await applyChanges(at, { paths: [], dryRun: false }).catch(() => {});
    const there = lstatSync(join(projectDir, ".git/logs/HEAD"), { throwIfNoEntry: false });
    assert.equal(there?.isSymbolicLink() ?? false, false, `in round ${round}`);
  }
});
