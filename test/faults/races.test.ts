// Calls that race for one sandbox: one end, told once, and nothing stays.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { describe, it } from "node:test";
import { CaissonError, connect } from "@caisson/client";
import { randomFrom } from "../support/cutting-proxy.ts";
import { accounts, startDaemon, temporaryDirectory } from "../support/daemon.ts";
import { isFull, within } from "../support/dose.ts";
import { sleep } from "../support/eventually.ts";
import { remainsAfter } from "./remains.ts";

const seed = Number(process.env.CAISSON_TEST_SEED ?? Date.now() % 100_000);
const rounds = isFull() ? 500 : 10;
/** What a call may answer that came too late. */
const tooLate = new Set(["SANDBOX_ENDED", "SANDBOX_NOT_FOUND", "PROCESS_ENDED", "GUEST_LOST", "UNAVAILABLE"]);

for (const account of accounts()) {
  describe(`racing for a sandbox, as ${account.name} (seed ${seed})`, { timeout: within(200_000) }, () => {
    it("ends once, gives every command one end, and leaves nothing", async () => {
      const random = randomFrom(seed);
      const home = temporaryDirectory(account);
      await using daemon = await startDaemon({ account, home });
      await using client = await connect({ socket: daemon.socket });
      const ids: string[] = [];
      for (let round = 0; round < rounds; round++) {
        const box = await client.create();
        ids.push(box.id);
        const later = async <T>(call: () => Promise<T>) => {
          await sleep(random(30));
          return call();
        };
        const outcomes = await Promise.allSettled([
          ...[1, 2, 3, 4].map(() => later(() => box.run(["sh", "-c", "echo hi; sleep 0.01"]))),
          later(() => box.run(["sleep", "600"])),
          later(() => box.files.write("/tmp/f", "x".repeat(100_000))),
          later(() => box.delete()),
          later(() => box.delete()),
          later(() => box.delete({ forget: false })),
        ]);
        for (const outcome of outcomes) {
          if (outcome.status === "fulfilled") continue;
          const { code, message } = CaissonError.from(outcome.reason);
          assert.ok(tooLate.has(code), `${code}: ${message}`);
        }
      }
      for (const id of ids) {
        const events = await Array.fromAsync(client.events.subscribe({ sandboxId: id, follow: false }));
        assert.equal(events.filter(({ type }) => type === "sandbox.ended").length, 1, id);
        const started = events
          .filter(({ type }) => type === "process.started")
          .map(({ processId }) => processId);
        const exited = events
          .filter(({ type }) => type === "process.exited")
          .map(({ processId }) => processId);
        assert.deepEqual(exited.sort(), started.sort(), id);
        // A delete that finds it ended already forgets it.
        const lasting = events.filter(({ type }) => type !== "sandbox.forgotten");
        assert.equal(lasting.at(-1)?.type, "sandbox.ended");
      }
      assert.deepEqual(await remainsAfter(daemon), []);
      rmSync(home, { recursive: true, force: true });
    });
  });
}
