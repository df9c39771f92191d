import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract/errors";
import { FakeDaemon, socketClient } from "../testing/index.ts";
import { resuming } from "./resume.ts";

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test("cut at random points, a command's output arrives whole and once", async () => {
  const daemon = new FakeDaemon();
  await using setup = await socketClient(daemon);
  const random = generator(42);
  const box = await setup.client.create();
  for (let round = 0; round < 10; round++) {
    // Every connection dies after a while, but never before it could say something new.
    setup.peer.cutAfter = () => 300 + Math.floor(random() * 3000);
    const run = await box.exec(["count", "500"]);
    let text = "";
    for await (const event of run.output()) if (event.stream === "stdout") text += Buffer.from(event.bytes);
    assert.equal(text, Array.from({ length: 500 }, (_, index) => `${index + 1}\n`).join(""));
    assert.equal((await run.exit).code, 0);
  }
  assert.equal(daemon.processes.get(box.id)?.length, 10);
});

test("cut before the start was heard of, a command still starts once", async () => {
  const daemon = new FakeDaemon();
  await using setup = await socketClient(daemon);
  const box = await setup.client.create();
  let cuts = 2;
  setup.peer.cutAfter = () => (cuts-- > 0 ? 5 : undefined);
  const run = await box.exec(["echo", "once"]);
  assert.equal((await run.result()).stdout.text, "once\n");
  assert.equal(daemon.processes.get(box.id)?.length, 1);
  cuts = 2;
  setup.peer.cutAll();
  assert.equal((await box.run(["echo", "once"])).stdout.text, "once\n");
  assert.equal(daemon.processes.get(box.id)?.length, 2);
  const keys = daemon.calls.filter(({ method }) => method === "exec" || method === "startProcess");
  assert.ok(keys.every(({ request }) => (request as { idempotencyKey: string }).idempotencyKey !== ""));
});

test("cut at random points, events arrive without gap or duplicate", async () => {
  await using setup = await socketClient();
  const random = generator(7);
  for (let i = 0; i < 50; i++) await setup.client.create();
  setup.peer.cutAfter = () => 100 + Math.floor(random() * 500);
  const seen: number[] = [];
  for await (const event of setup.client.events.subscribe()) {
    seen.push(event.seq);
    if (seen.length === 50) break;
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 50 }, (_, index) => index + 1),
  );
});

test("output that is gone is told as a gap", async () => {
  const daemon = new FakeDaemon();
  await using setup = await socketClient(daemon);
  const box = await setup.client.create();
  const run = await box.exec(["echo", "hello"]);
  await run.exit;
  daemon.process(box.id, run.id).dropped = 3n;
  const seen = [];
  for await (const event of run.output()) seen.push(event);
  assert.deepEqual(seen[0], { seq: 3, stream: "gap", missing: 3 });
  assert.equal(seen[1]?.seq, 6);
  assert.equal((await run.result()).truncated, true);
});

test("what is no cut is not tried again, and cuts without progress end", async () => {
  let opened = 0;
  const failing = (code: "INVALID_INPUT" | "UNAVAILABLE") => {
    opened = 0;
    return resuming({
      // biome-ignore lint/correctness/useYield: it fails before its first item
      open: async function* () {
        opened++;
        throw new CaissonError(code, "no");
      },
      took: () => true,
      endless: true,
      signal: AbortSignal.timeout(200),
    });
  };
  await assert.rejects(failing("INVALID_INPUT").next(), { code: "INVALID_INPUT" });
  assert.equal(opened, 1);
  await assert.rejects(failing("UNAVAILABLE").next(), { code: "DEADLINE_EXCEEDED" });
  assert.ok(opened >= 2);
});
