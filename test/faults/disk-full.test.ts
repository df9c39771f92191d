// A full disk under the daemon: an error of the table, and all is well once there is room.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { CaissonError, connect } from "@caisson/client";
import { startDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { onOwnMount } from "../support/own-mount.ts";

describe("a full disk", { timeout: 120_000 }, () => {
  it("is told as such, acknowledges nothing that is not kept, and is over when there is room again", (t) =>
    onOwnMount(t, { file: import.meta.filename, size: "24m" }, async (home) => {
      await using daemon = await startDaemon({ home });
      await using client = await connect({ socket: daemon.socket, retry: false });
      const box = await client.create();
      const before = await box.run(["echo", "before"]);
      const ballast = join(home, "ballast");
      fill(ballast);
      const failure = await untilRefused(() =>
        box.run(["sh", "-c", "head -c 100000 /dev/zero"], { timeout: 5000 }),
      );
      assert.match(failure.code, /^STORAGE_/, failure.message);
      rmSync(ballast);
      const after = await eventually(
        () => box.run(["echo", "after"]).catch(() => undefined),
        (result) => result?.stdout.text === "after\n",
      );
      assert.equal(after?.code, 0);
      assert.equal((await box.process(before.processId).result()).stdout.text, "before\n");
      assert.equal((await client.events.verify()).intact, true);
      await eventually(
        () => client.system.health(),
        ({ ready, troubles }) => ready && troubles.length === 0,
      );
    }));
});

function fill(path: string): void {
  for (let size = 24 << 20; size >= 4096; size = Math.floor(size / 2)) {
    try {
      writeFileSync(path, Buffer.alloc(size), { flag: "a" });
      size *= 2;
    } catch {
      // Full, or nearly.
    }
  }
}

async function untilRefused(call: () => Promise<unknown>): Promise<CaissonError> {
  for (let count = 0; count < 200; count++) {
    try {
      await call();
    } catch (thrown) {
      return CaissonError.from(thrown);
    }
  }
  throw new Error("a full disk was never noticed");
}
