// Runtimes that are killed under load, and daemons that are killed above them: told once, in words, and nothing stays.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { connect } from "@caisson/client";
import { acrossCrash, counting } from "../support/across-crash.ts";
import { accounts, processesWith, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";

const slow = counting(40, 0.05);

/** The process that the keeper started for a sandbox. */
function outerOf(daemon: TestDaemon, boxId: string): number {
  const log = readFileSync(join(daemon.home, "sandboxes", boxId, "launch.log"), "utf8");
  return Number(/launched (\d+)/.exec(log)![1]);
}

for (const account of accounts()) {
  describe(`gVisor, as ${account.name}`, { timeout: 200_000 }, () => {
    it("goes on with its sandboxes when the daemon is killed, and loses no output", async () => {
      await using daemon = await startDaemon({ account });
      const { boxId, runId } = await (async () => {
        await using client = await connect({ socket: daemon.socket });
        const box = await client.create({ driver: "runsc" });
        const run = await box.exec(slow.argv);
        return { boxId: box.id, runId: run.id };
      })();
      await acrossCrash(daemon, { boxId, runId }, async ({ stdout, code }) => {
        assert.deepEqual([stdout, code], [slow.output, 0]);
      });
    });

    it("ends a sandbox whose runsc is killed under load, and every command in it, once", async () => {
      await using daemon = await startDaemon({ account });
      await using client = await connect({ socket: daemon.socket });
      const box = await client.create({ driver: "runsc" });
      const runs = await Promise.all(
        [1, 2, 3].map(() => box.exec(["sh", "-c", "while :; do echo load; done"])),
      );
      process.kill(outerOf(daemon, box.id), "SIGKILL");
      for (const run of runs) assert.equal((await run.exit).lost, "guest_lost");
      const info = await eventually(
        () => box.refresh(),
        ({ state }) => state === "ended",
      );
      assert.match(info.endReason, /^guest_(died|lost)$/);
      await eventually(
        () => processesWith(box.id),
        (left) => left.length === 0,
      );
      assert.equal((await client.run(["echo", "fine"], { spec: { driver: "runsc" } })).stdout.text, "fine\n");
    });
  });
}
