import assert from "node:assert/strict";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import type { Driver } from "../../driver/driver.ts";
import type { SnapshotDocument } from "./document.ts";
import { checkMachine, runningOf } from "./machine.ts";

const going = { id: "p2", stream: 2, argv: ["sleep", "9"], cwd: "/", startedAt: 1, actor: "uid:0" };
const ended = { ...going, id: "p7", stream: 7, exit: { code: 0 } };
const document = (more: object = {}) =>
  ({
    host: "a",
    processes: [going, ended],
    outputs: { p2: [[1, "eA=="]] },
    ...more,
  }) as unknown as SnapshotDocument;

test("of commands that came with a machine those that run are taken, as the importer's", () => {
  const { processes, outputs, lastProcess } = runningOf(document(), "key:mine");
  assert.deepEqual(
    processes.map(({ id, actor, exit }) => [id, actor, exit]),
    [["p2", "key:mine", undefined]],
  );
  assert.deepEqual([outputs, lastProcess], [{ p2: [[1, "eA=="]] }, 7]);
});

test("commands that are described wrongly are refused", () => {
  const wrong: object[] = [
    { processes: [{ ...going, id: "../p1" }] },
    { processes: [going, going] },
    { processes: [{ ...going, stream: -1 }] },
    { processes: [{ ...going, argv: "sleep" }] },
    { processes: [null] },
    { outputs: { p2: [[3, ""]] } },
    { outputs: { p2: [[1, "x".repeat(70_000)]] } },
  ];
  for (const more of wrong)
    assert.throws(() => runningOf(document(more), ""), { code: "SNAPSHOT_INVALID" }, JSON.stringify(more));
});

test("a machine is taken only on request, and only where it fits", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-machine-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const note = (memoryBytes: number, disks: object = {}) =>
    writeFileSync(
      join(dir, "machine.json"),
      JSON.stringify({ initrd: "/store/initrd", image: "/store/image", ...disks, shape: { memoryBytes } }),
    );
  writeFileSync(join(dir, "machine"), "devices");
  writeFileSync(join(dir, "machine.memory"), "");
  truncateSync(join(dir, "machine.memory"), 4096);
  let fits = true;
  const driver = {
    name: "qemu",
    machineHost: async () => "a",
    async mustFit() {
      if (!fits) throw new CaissonError("SANDBOX_FAILED", "another image");
    },
  } as unknown as Driver;
  note(4096);
  await checkMachine(driver, document(), dir, true);
  await assert.rejects(checkMachine(driver, document(), dir, false), { code: "INVALID_INPUT" });
  const invalid = (words: RegExp) => ({ code: "SNAPSHOT_INVALID", message: words });
  await assert.rejects(checkMachine(driver, document({ host: "b" }), dir, true), invalid(/kind of host/));
  fits = false;
  await assert.rejects(checkMachine(driver, document(), dir, true), invalid(/host image, kernel or Caisson/));
  note(8192);
  await assert.rejects(checkMachine(driver, document(), dir, true), invalid(/size/));
  for (const disks of [
    { image: "/etc/shadow" },
    { beside: "/etc/shadow" },
    { beside: 1 },
    { beside: null },
  ]) {
    note(4096, disks);
    await assert.rejects(checkMachine(driver, document(), dir, true), invalid(/described wrongly/));
  }
  fits = true;
  note(4096, { beside: "/store/beside" });
  await checkMachine(driver, document(), dir, true);
});
