// Engines that are killed, stopped and started again under their sandboxes, and daemons that are killed above them.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { type Box, type Client, connect } from "@caisson/client";
import { accounts, startDaemon } from "../support/daemon.ts";
import { canStartDockerd, startDockerd, type TestEngine } from "../support/dockerd.ts";
import { refused } from "../support/errors.ts";
import { eventually } from "../support/eventually.ts";

const noPool = { CAISSON_POOL_MAX: "0", CAISSON_POOL_MIN: "0" };
const counting = ["sh", "-c", "for i in $(seq 40); do echo $i; sleep 0.05; done"];
const counted = Array.from({ length: 40 }, (_, index) => `${index + 1}\n`).join("");

/** Containers that the engine knows, whatever their state. */
function containers(engine: TestEngine): string[] {
  const args = ["-H", engine.env.DOCKER_HOST, "ps", "--all", "--quiet"];
  return spawnSync("docker", args, { encoding: "utf8" }).stdout.split("\n").filter(Boolean);
}

async function sayHello(box: Box): Promise<void> {
  assert.equal((await box.run(["echo", "hello"])).stdout.text, "hello\n");
}

async function reasonOf(client: Client): Promise<string> {
  const { drivers } = await client.system.capabilities();
  const { usable, reason } = drivers.find(({ name }) => name === "docker")!;
  assert.equal(usable, false);
  return reason;
}

describe("Docker", { timeout: 200_000, skip: !canStartDockerd() && "only root can start an engine" }, () => {
  it("goes on with its sandboxes when the daemon is killed, and leaves no container behind", async () => {
    await using engine = await startDockerd();
    for (const account of accounts()) {
      await using daemon = await startDaemon({ account, env: engine.env });
      const { boxId, runId } = await (async () => {
        await using client = await connect({ socket: daemon.socket });
        const box = await client.create({ driver: "docker" });
        return { boxId: box.id, runId: (await box.exec(counting)).id };
      })();
      await daemon.crash();
      await daemon.restart();
      await using client = await connect({ socket: daemon.socket });
      const box = await client.sandboxes.get(boxId);
      const result = await box.process(runId).result();
      assert.deepEqual([result.stdout.text, result.code], [counted, 0]);
      await box.delete();
      // What the earlier daemon's pool had made goes too.
      await eventually(
        () => containers(engine),
        (left) => left.length === 0,
      );
    }
  });

  it("serves while its engine is dead, says why there are no new ones, and makes new ones when it is back", async () => {
    await using engine = await startDockerd();
    await using daemon = await startDaemon({ env: { ...engine.env, ...noPool } });
    await using client = await connect({ socket: daemon.socket });
    const [deleted, kept] = await Promise.all([1, 2].map(() => client.create({ driver: "docker" })));
    const run = await deleted!.exec(["sh", "-c", "while :; do echo load; sleep 0.01; done"]);
    await engine.crash();
    await sayHello(deleted!);
    await refused("NO_DRIVER", client.create({ driver: "docker" }));
    assert.match(await reasonOf(client), /the engine is not running: nothing listens at /);
    // Without its engine a sandbox is ended by its first process.
    await deleted!.delete();
    assert.notEqual((await run.exit).lost, "");
    // Another daemon finds what lives by its process.
    await daemon.crash();
    await daemon.restart();
    await using later = await connect({ socket: daemon.socket });
    const again = await later.sandboxes.get(kept!.id);
    await sayHello(again);

    await engine.start();
    await using fresh = await later.create({ driver: "docker" });
    await sayHello(fresh);
    // An engine without live-restore ends what an earlier one had started: told once, as an end.
    const info = await eventually(
      () => again.refresh(),
      ({ state }) => state === "ended",
    );
    assert.match(info.endReason, /^guest_(died|lost)$/);
    const ends = (
      await Array.fromAsync(later.events.subscribe({ sandboxId: kept!.id, follow: false }))
    ).filter(({ type }) => type === "sandbox.ended");
    assert.equal(ends.length, 1);
    // What could not be removed meanwhile is removed now.
    await eventually(
      () => containers(engine),
      (left) => left.length === 1,
    );
  });

  it("goes on over the restart of an engine with live-restore, and ends with one that is stopped in order", async () => {
    await using engine = await startDockerd({ liveRestore: true });
    await using daemon = await startDaemon({ env: { ...engine.env, ...noPool } });
    await using client = await connect({ socket: daemon.socket });
    const box = await client.create({ driver: "docker" });
    const run = await box.exec(counting);
    await engine.crash();
    await engine.start();
    assert.equal((await run.result()).stdout.text, counted);
    await engine.stop();
    await sayHello(box);
    await engine.start({ liveRestore: false });
    await eventually(
      () => box.refresh(),
      ({ state }) => state === "ended",
    );
    const other = await client.create({ driver: "docker" });
    await sayHello(other);
    await engine.stop();
    const info = await eventually(
      () => other.refresh(),
      ({ state }) => state === "ended",
    );
    assert.match(info.endReason, /^guest_(died|lost)$/);
    await refused("NO_DRIVER", client.create({ driver: "docker" }));
  });

  it("says whose word it is that names an engine elsewhere, and takes the setting's instead", async () => {
    {
      await using daemon = await startDaemon({ env: { DOCKER_HOST: "tcp://192.0.2.1:2375" } });
      await using client = await connect({ socket: daemon.socket });
      assert.equal(await reasonOf(client), "DOCKER_HOST names tcp, not a Unix socket of this machine");
    }
    await using engine = await startDockerd();
    const env = {
      DOCKER_HOST: "tcp://192.0.2.1:2375",
      CAISSON_DOCKER_HOST: engine.env.DOCKER_HOST,
      ...noPool,
    };
    await using daemon = await startDaemon({ env });
    await using client = await connect({ socket: daemon.socket });
    await using box = await client.create({ driver: "docker" });
    await sayHello(box);
  });
});
