import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract/errors";
import { connect } from "../connect.ts";
import { socketClient } from "../testing/index.ts";

test("unary calls share one connection", async () => {
  await using setup = await socketClient();
  const boxes = await Promise.all([1, 2, 3, 4, 5].map(() => setup.client.create()));
  assert.equal(new Set(boxes.map((box) => box.id)).size, 5);
  assert.equal(setup.peer.connected, 1);
});

test("a stream that came to its end leaves its connection to the next", async () => {
  await using setup = await socketClient();
  const box = await setup.client.create();
  for (let i = 0; i < 5; i++) assert.equal((await box.run(["echo", "hi"])).stdout.text, "hi\n");
  assert.equal(setup.peer.connected, 2);
});

test("a stream that is left early closes its connection", async () => {
  await using setup = await socketClient();
  const box = await setup.client.create();
  const run = await box.exec(["wait"]);
  assert.equal(setup.peer.connections.size, 2);
  await run.detach();
  while (setup.peer.connections.size > 1) await new Promise((resolve) => setImmediate(resolve));
  await run.signal("SIGTERM");
  assert.equal((await run.exit).code, 143);
});

test("an aborted call ends at once and closes its connection", async () => {
  await using setup = await socketClient();
  const box = await setup.client.create();
  const run = await box.exec(["wait"]);
  const abort = new AbortController();
  const waiting = run.wait({ signal: abort.signal });
  abort.abort();
  await assert.rejects(waiting, { code: "CANCELLED" });
  await run.signal("SIGKILL");
});

test("the server's errors arrive with code and next step", async () => {
  await using setup = await socketClient();
  await assert.rejects(setup.client.sandboxes.get("sb_none"), (thrown) => {
    assert.ok(thrown instanceof CaissonError);
    assert.equal(thrown.code, "SANDBOX_NOT_FOUND");
    assert.match(thrown.nextStep, /caisson ls/);
    return true;
  });
  const box = await setup.client.create();
  await assert.rejects(box.run(["nonsense"]), { code: "COMMAND_NOT_FOUND" });
  await assert.rejects(box.exec(["nonsense"]), { code: "COMMAND_NOT_FOUND" });
});

test("a slow reader holds the socket, not memory, and loses nothing", async () => {
  await using setup = await socketClient();
  const box = await setup.client.create();
  const chunk = "ab".repeat(64 * 1024);
  const run = await box.exec(["cat"], { openStdin: true });
  const output = run.output();
  const size = 128;
  for (let i = 0; i < size; i++) await run.stdin.write(Buffer.from(chunk, "hex"));
  await run.stdin.end();
  let bytes = 0;
  for await (const event of output) {
    if (event.stream !== "stdout") continue;
    bytes += event.bytes.length;
    assert.equal(event.seq, bytes);
    if (bytes % (1024 * 1024) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.equal(bytes, size * 64 * 1024);
});

test("where nobody listens, the error says how to start the daemon", async () => {
  await using client = await connect({ socket: "/nonexistent/daemon.sock" });
  const soon = AbortSignal.timeout(50);
  await assert.rejects(client.system.health({ signal: soon }), (thrown) => {
    assert.ok(thrown instanceof CaissonError);
    assert.ok(thrown.code === "UNAVAILABLE" || thrown.code === "DEADLINE_EXCEEDED");
    return true;
  });
});
