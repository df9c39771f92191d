// Connections that break at random points: nothing is lost, nothing comes or happens twice.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { connect } from "@caisson/client";
import { cuttingProxy, randomFrom } from "../support/cutting-proxy.ts";
import { startDaemon, type TestDaemon } from "../support/daemon.ts";

const seed = Number(process.env.CAISSON_TEST_SEED ?? Date.now() % 100_000);
const rounds = process.env.CAISSON_TEST_FULL ? 20 : 3;

describe(`a connection that is cut at random points (seed ${seed})`, { timeout: 240_000 }, () => {
  let daemon: TestDaemon;
  before(async () => {
    daemon = await startDaemon();
  });
  after(() => daemon[Symbol.asyncDispose]());

  it("loses no byte of a command's output and repeats none", async () => {
    await using proxy = await cuttingProxy(daemon.socket, { bytes: 6_000_000, random: randomFrom(seed) });
    await using client = await connect({ socket: proxy.path });
    await using direct = await connect({ socket: daemon.socket });
    await using box = await direct.create();
    const lines = `${Array.from({ length: 2_000_000 }, (_, i) => i + 1).join("\n")}\n`;
    const expected = createHash("sha256").update(lines).digest("hex");
    for (let round = 0; round < rounds; round++) {
      const run = await client.sandboxes.at(box.id).exec(["seq", "2000000"]);
      const hash = createHash("sha256");
      let last = 0;
      for await (const event of run.output()) {
        assert.ok(event.stream === "stdout");
        assert.equal(event.seq - event.bytes.length, last);
        last = event.seq;
        hash.update(event.bytes);
      }
      assert.equal(hash.digest("hex"), expected);
      assert.equal((await run.exit).code, 0);
    }
    assert.ok(proxy.cuts > rounds, `only ${proxy.cuts} cuts`);
  });

  it("loses no event of the log and repeats none", async () => {
    await using proxy = await cuttingProxy(daemon.socket, { bytes: 3000, random: randomFrom(seed + 1) });
    await using client = await connect({ socket: proxy.path });
    await using direct = await connect({ socket: daemon.socket });
    const seen: number[] = [];
    const until = await lastEvent(direct, 40);
    for await (const { seq } of client.events.subscribe()) {
      seen.push(seq);
      if (seq >= until) break;
    }
    assert.deepEqual(
      seen,
      Array.from({ length: seen.length }, (_, i) => i + 1),
    );
    assert.ok(proxy.cuts > 2, `only ${proxy.cuts} cuts`);
  });

  it("runs nothing twice", async () => {
    await using proxy = await cuttingProxy(daemon.socket, { bytes: 15_000, random: randomFrom(seed + 2) });
    await using client = await connect({ socket: proxy.path });
    await using direct = await connect({ socket: daemon.socket });
    await using box = await direct.create();
    let acknowledged = 0;
    for (let round = 0; round < rounds * 10; round++) {
      const result = await client.sandboxes
        .at(box.id)
        .run(["sh", "-c", `echo ${round} >> ~/ran`])
        .catch(() => undefined);
      if (result) acknowledged++;
    }
    const ran = (await box.files.read("/home/agent/ran")).text.trim().split("\n");
    assert.equal(new Set(ran).size, ran.length, "something ran twice");
    assert.ok(ran.length >= acknowledged, "something was acknowledged and did not run");
    assert.ok(acknowledged > rounds * 5, `only ${acknowledged} got through`);
  });
});

async function lastEvent(client: Awaited<ReturnType<typeof connect>>, runs: number): Promise<number> {
  await using box = await client.create();
  for (let i = 0; i < runs; i++) await box.run(["true"]);
  return (await box.refresh()).seq;
}
