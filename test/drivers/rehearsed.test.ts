// gVisor's sandboxes that wait closed have run a shell already; whoever gets one sees it by the numbers of its processes alone.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { type Box, connect } from "@caisson/client";
import { accounts, startDaemon } from "../support/daemon.ts";

/** The number of a sandbox's first command. */
async function firstProcess(box: Box): Promise<number> {
  return Number((await box.run(["sh", "-c", "echo $$"])).stdout.text);
}

describe("rehearsed sandboxes", { concurrency: 2, timeout: 120_000 }, () => {
  for (const account of accounts()) {
    it(`are given to whoever asks for the same again, as ${account.name}`, async () => {
      await using daemon = await startDaemon({ account });
      await using client = await connect({ socket: daemon.socket });
      const spec = { driver: "runsc" };
      await using cold = await client.create(spec);
      const usual = await firstProcess(cold);
      for (;;) {
        // One is closed ahead when the daemon has time, and a sandbox to spare.
        await setTimeout(1000);
        await using box = await client.create(spec);
        if ((await firstProcess(box)) === usual) continue;
        assert.deepEqual(
          (await box.processes()).map(({ argv }) => argv[0]),
          ["sh"],
          "what was rehearsed is no command of the sandbox",
        );
        break;
      }
    });
  }
});
