// What a sandbox writes to its project lies on the host's disk: it is bounded there too, whatever way it is written.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Box } from "@caisson/client";
import { accounts } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";
import { makeProject, type Subject, subject } from "./project.ts";

const MiB = 1024 * 1024;

for (const account of accounts()) {
  describe(`a project's layer as ${account.name}`, { timeout: 120_000 }, () => {
    let it: Subject;
    before(async () => {
      it = await subject(account);
    });
    after(() => it[Symbol.asyncDispose]());

    const make = (dir: string, disk: number, mode: "overlay" | "copy" = "overlay"): Promise<Box> =>
      it.client.create({ workspace: { dir, mode }, limits: { disk } });

    /** Runs what would go on for ever. */
    const fill = (box: Box, script: string) => box.run(["sh", "-c", script], { timeout: 60_000 });

    test("ends the commands that fill it, says so, and can be freed again", async () => {
      using project = makeProject(account, "echo 1 > f");
      const box = await make(project.dir, 32 * MiB);
      const layer = box.info.enforced?.mechanisms.find(({ name }) => name === "limit.layer");
      assert.deepEqual([layer?.state, layer?.by], ["enforced", "watcher"]);
      const exit = await fill(box, "head -c 100000000 /dev/zero > big; sleep 60");
      assert.deepEqual([exit.diskExceeded, exit.signal, exit.timedOut], [true, "SIGKILL", false]);
      const next = await box.run(["sh", "-c", "rm big; echo free; ls"]);
      assert.deepEqual([next.stdout.text, next.diskExceeded], ["free\nf\n", false]);
      const types: string[] = [];
      for await (const { type } of it.client.events.subscribe({ sandboxId: box.id, follow: false }))
        types.push(type);
      assert.ok(types.includes("sandbox.disk_exceeded"), types.join());
      // Whoever goes on loses the sandbox, and keeps what it wrote.
      await fill(box, "head -c 200000000 /dev/zero > more; sleep 60");
      const ended = await eventually(
        () => box.refresh(),
        ({ state }) => state === "ended",
      );
      assert.equal(ended.endReason, "disk_exceeded");
      assert.deepEqual(
        (await box.workspace.diff()).map(({ path }) => path),
        ["more"],
      );
    });

    const ways: [what: string, disk: number, script: string][] = [
      ["a file without a name", 32 * MiB, "exec 3> x; rm x; head -c 100000000 /dev/zero >&3; sleep 60"],
      ["files without content", MiB, "mkdir d; cd d; seq 5000 | xargs touch; sleep 60"],
    ];
    for (const [what, disk, script] of ways) {
      test(`counts ${what}`, async () => {
        using project = makeProject(account, "echo 1 > f");
        const box = await make(project.dir, disk);
        const exit = await fill(box, script);
        assert.deepEqual([exit.diskExceeded, exit.signal], [true, "SIGKILL"]);
        await box.delete();
      });
    }

    test("counts of a copy only what was written to it", async () => {
      using project = makeProject(account, "head -c 50000000 /dev/zero > large");
      const box = await make(project.dir, 16 * MiB, "copy");
      assert.equal((await box.run(["sh", "-c", "echo 1 > small; sleep 1"])).code, 0);
      assert.equal((await fill(box, "head -c 60000000 /dev/zero > big; sleep 60")).diskExceeded, true);
      await box.delete();
    });
  });
}
