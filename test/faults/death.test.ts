// Guests and keepers that die or hang: told once, in words, and nothing stays.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { connect } from "@caisson/client";
import { accounts, startDaemon, type TestDaemon, temporaryDirectory } from "../support/daemon.ts";
import { refused } from "../support/errors.ts";
import { eventually } from "../support/eventually.ts";
import { remainsAfter } from "./remains.ts";

/** PID 1 of a sandbox, as the host numbers it: the only child of its outer process. */
function guestOf(daemon: TestDaemon, boxId: string): { outer: number; guest: number } {
  const log = readFileSync(join(daemon.home, "sandboxes", boxId, "launch.log"), "utf8");
  const outer = Number(/launched (\d+)/.exec(log)![1]);
  const children = readFileSync(`/proc/${outer}/task/${outer}/children`, "utf8").trim().split(" ");
  return { outer, guest: Number(children[0]) };
}

function keeperOf(daemon: TestDaemon): number {
  const children = readdirSync(`/proc/${daemon.child.pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${daemon.child.pid}/task/${thread}/children`, "utf8")
      .trim()
      .split(" ")
      .filter(Boolean),
  );
  const keeper = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("keeper"));
  return Number(keeper);
}

for (const account of accounts()) {
  describe(`death and hanging, as ${account.name}`, { timeout: 200_000 }, () => {
    const withDaemon = async (work: (daemon: TestDaemon) => Promise<void>) => {
      const home = temporaryDirectory(account);
      await using daemon = await startDaemon({ account, home });
      await work(daemon);
      assert.deepEqual(await remainsAfter(daemon), []);
      rmSync(home, { recursive: true, force: true });
    };

    for (const whom of ["guest", "outer"] as const) {
      it(`ends a sandbox whose ${whom} process is killed, and every command in it, once`, () =>
        withDaemon(async (daemon) => {
          await using client = await connect({ socket: daemon.socket });
          const box = await client.create();
          const other = await client.create();
          const runs = await Promise.all([1, 2, 3].map(() => box.exec(["sh", "-c", "echo up; sleep 600"])));
          process.kill(guestOf(daemon, box.id)[whom], "SIGKILL");
          for (const run of runs) {
            const result = await run.result();
            assert.deepEqual([result.lost, result.code], ["guest_lost", 137]);
          }
          const info = await eventually(
            () => box.refresh(),
            ({ state }) => state === "ended",
          );
          assert.match(info.endReason, /^guest_(died|lost)$/);
          await refused("SANDBOX_ENDED", box.run(["true"]));
          assert.equal((await other.run(["echo", "fine"])).stdout.text, "fine\n");
          const events = await Array.fromAsync(client.events.subscribe({ sandboxId: box.id, follow: false }));
          assert.equal(events.filter(({ type }) => type === "sandbox.ended").length, 1);
          assert.equal(events.filter(({ type }) => type === "process.exited").length, 3);
        }));
    }

    it("goes on when its keeper is killed", () =>
      withDaemon(async (daemon) => {
        await using client = await connect({ socket: daemon.socket });
        const box = await client.create();
        const run = await box.exec(["sh", "-c", "read line; echo got $line"], { openStdin: true });
        for (let round = 0; round < 2; round++) {
          process.kill(keeperOf(daemon), "SIGKILL");
          assert.equal((await box.run(["echo", "fine"])).stdout.text, "fine\n");
          await using another = await client.create();
          assert.equal((await another.run(["echo", "new"])).stdout.text, "new\n");
        }
        await run.stdin.end("it\n");
        assert.equal((await run.result()).stdout.text, "got it\n");
      }));

    it("notices at its start that a guest died while no daemon ran", () =>
      withDaemon(async (daemon) => {
        let id: string;
        {
          await using client = await connect({ socket: daemon.socket });
          const box = await client.create();
          await (await box.exec(["sleep", "600"])).detach();
          id = box.id;
        }
        const { outer } = guestOf(daemon, id);
        await daemon.crash();
        process.kill(outer, "SIGKILL");
        await daemon.restart();
        await using client = await connect({ socket: daemon.socket });
        const box = await client.sandboxes.get(id);
        const info = await eventually(
          () => box.refresh(),
          ({ state }) => state === "ended",
        );
        assert.match(info.endReason, /^guest_/);
        const [process_] = await box.processes();
        assert.equal(process_?.exit?.lost, "guest_lost");
      }));
  });
}

describe("a guest that hangs", { timeout: 200_000 }, () => {
  it("is lost after it has missed its heartbeats, and what it ran is told to be lost", async () => {
    const home = temporaryDirectory(accounts()[0]!);
    await using daemon = await startDaemon({ home });
    await using client = await connect({ socket: daemon.socket });
    const box = await client.create();
    const run = await box.exec(["sleep", "600"]);
    process.kill(guestOf(daemon, box.id).guest, "SIGSTOP");
    assert.equal((await run.exit).lost, "guest_lost");
    const info = await eventually(
      () => box.refresh(),
      ({ state }) => state === "ended",
    );
    assert.equal(info.endReason, "guest_lost");
    assert.deepEqual(await remainsAfter(daemon), []);
    rmSync(home, { recursive: true, force: true });
  });
});
