import assert from "node:assert/strict";
import { test } from "node:test";
import { type Client, connect } from "../index.ts";
import { FakeDaemon, inProcessClient, socketClient } from "../testing/index.ts";

async function withEach(check: (client: Client) => Promise<void>): Promise<void> {
  await check((await inProcessClient()).client);
  await using setup = await socketClient();
  await check(setup.client);
}

test("a sandbox ends with its scope", () =>
  withEach(async (client) => {
    let id: string;
    {
      await using box = await client.create({ labels: { a: "b" } });
      id = box.id;
      assert.equal(box.info.state, "ready");
      assert.deepEqual(box.info.labels, { a: "b" });
    }
    const box = await client.sandboxes.get(id);
    assert.equal(box.info.state, "ended");
    assert.equal(box.info.endReason, "deleted");
  }));

test("a batch returns output and exit as values", () =>
  withEach(async (client) => {
    const box = await client.create();
    const result = await box.run(["cat"], { stdin: "in" });
    assert.equal(result.code, 0);
    assert.equal(result.stdout.text, "in");
    assert.equal(result.sandboxId, box.id);
    assert.equal((await box.run(["exit", "3"])).code, 3);
    assert.equal((await box.run(["complain", "x"])).stderr.text, "x\n");
    assert.deepEqual([...(await box.run(["bytes", "00ff80"])).stdout.bytes], [0, 255, 128]);
  }));

test("a running command streams numbered output and can be replayed from any number", () =>
  withEach(async (client) => {
    const box = await client.create();
    const run = await box.exec(["echo", "hello"]);
    const seen = [];
    for await (const event of run.output({ from: 0 })) seen.push(event);
    assert.equal((await run.exit).code, 0);
    assert.equal(seen.at(-1)?.seq, 6);
    let rest = "";
    for await (const event of run.output({ from: 2 }))
      if (event.stream === "stdout") rest += Buffer.from(event.bytes);
    assert.equal(rest, "llo\n");
    assert.equal((await box.process(run.id).exit).code, 0);
  }));

test("the exit is there without reading any output", () =>
  withEach(async (client) => {
    const box = await client.create();
    const run = await box.exec(["count", "100"]);
    assert.equal((await run.exit).code, 0);
    assert.equal((await run.result()).stdout.text.split("\n").length, 101);
  }));

test("input arrives in order, in pieces, from a stream, and large", () =>
  withEach(async (client) => {
    const box = await client.create();
    const run = await box.exec(["cat"], { openStdin: true });
    void run.stdin.write("a");
    void run.stdin.write("b");
    await run.stdin.end("c");
    assert.equal((await run.result()).stdout.text, "abc");
    async function* pieces() {
      yield "x";
      yield Buffer.from("y");
    }
    assert.equal((await box.run(["cat"], { stdin: pieces() })).stdout.text, "xy");
    const large = Buffer.alloc(5 * 1024 * 1024, 7);
    assert.ok(large.equals((await box.run(["cat"], { stdin: large })).stdout.bytes));
  }));

test("another client goes on writing where the first one stopped", () =>
  withEach(async (client) => {
    const box = await client.create();
    const run = await box.exec(["cat"], { openStdin: true });
    await run.stdin.write("first ");
    const same = box.process(run.id);
    await same.stdin.write("second");
    await same.stdin.end();
    assert.equal((await run.result()).stdout.text, "first second");
  }));

test("signals and the terminal's size reach the command", () =>
  withEach(async (client) => {
    const box = await client.create();
    const run = await box.exec(["wait"]);
    await run.signal("SIGTERM");
    const { code, signal } = await run.exit;
    assert.deepEqual({ code, signal }, { code: 143, signal: "SIGTERM" });
    const sized = await box.exec(["size"], { terminal: { columns: 100, rows: 30 }, openStdin: true });
    await sized.resize(120, 40);
    await sized.stdin.end();
    assert.equal((await sized.result()).stdout.text, "100x30\n120x40\n");
  }));

test("a command that is disposed of is killed", () =>
  withEach(async (client) => {
    const box = await client.create();
    let id: string;
    {
      await using run = await box.exec(["stubborn"]);
      id = run.id;
    }
    assert.equal((await box.process(id).exit).code, 137);
  }));

test("one-shot runs have a sandbox of their own; sessions share one", () =>
  withEach(async (client) => {
    const result = await client.run(["echo", "hi"], { spec: { profile: "moderate" } });
    assert.equal(result.stdout.text, "hi\n");
    assert.notEqual(result.sandboxId, "");
    const [first, second] = [
      await client.run(["true"], { session: "s" }),
      await (await client.exec(["true"], { session: "s" })).result(),
    ];
    assert.equal(first.sandboxId, second.sandboxId);
    assert.deepEqual(
      (await client.sessions.list()).map(({ name }) => name),
      ["s"],
    );
    await client.sessions.close("s");
    assert.deepEqual(await client.sessions.list(), []);
  }));

test("listing goes through all pages", () =>
  withEach(async (client) => {
    for (let i = 0; i < 5; i++) await client.create();
    const ids = [];
    for await (const sandbox of client.sandboxes.list()) ids.push(sandbox.id);
    assert.equal(ids.length, 5);
  }));

test("files are written, read in parts, listed, moved and removed", () =>
  withEach(async (client) => {
    const { files } = await client.create();
    const large = Buffer.alloc(3 * 1024 * 1024, "x");
    assert.equal((await files.write("/large", large)).size, large.length);
    assert.ok(large.equals((await files.read("/large")).bytes));
    assert.equal((await files.read("/large", { offset: 1, length: 3 })).text, "xxx");
    await files.write("/empty", "");
    assert.equal((await files.stat("/empty")).size, 0);
    await files.move("/empty", "/moved");
    await files.remove("/large");
    assert.deepEqual(
      (await files.list("/")).map(({ path, type }) => ({ path, type })),
      [{ path: "moved", type: "file" }],
    );
    const changes = [];
    for await (const change of files.watch("/")) changes.push(change.kind);
    assert.deepEqual(changes, ["ready", "created"]);
    await assert.rejects(files.write("/moved", "", { ifMatch: "-" }), { code: "ETAG_MISMATCH" });
  }));

test("numbers, dates and enums come as plain values", () =>
  withEach(async (client) => {
    const box = await client.create({ workspace: { dir: "/tmp/project", mode: "overlay" } });
    assert.ok(box.info.createdAt instanceof Date);
    assert.deepEqual(box.info.workspace, { dir: "/tmp/project", mode: "overlay" });
    assert.equal((await box.stats()).memoryBytes, 1048576);
    const { limits, drivers } = await client.system.capabilities();
    assert.equal(limits["sizes.message_bytes"], 4194304);
    assert.equal(drivers[0]?.tier, "container");
    assert.equal((await client.system.diagnose())[1]?.level, "problem");
    const key = await client.keys.create("ci", { scopes: ["read"], ttl: 1000 });
    assert.deepEqual([key.scopes, key.secret], [["read"], "csn_secret"]);
  }));

test("requests for approval are listed, watched and answered", async () => {
  const daemon = new FakeDaemon();
  const { client } = await inProcessClient(daemon);
  const first = daemon.approvals.ask({ kind: "network", subject: "a.test:443", sandboxId: "sb_1" });
  const stopping = new AbortController();
  const seen: string[] = [];
  for await (const { id, state, subject } of client.approvals.watch({ signal: stopping.signal })) {
    assert.equal(state, "pending");
    seen.push(subject);
    if (seen.length === 1) {
      const { decisionScope, decidedBy } = await client.approvals.allow(id, { scope: "sandbox" });
      assert.deepEqual([decisionScope, decidedBy], ["sandbox", "uid:0"]);
      daemon.approvals.ask({ kind: "network", subject: "b.test:443", sandboxId: "sb_1" });
    } else {
      await client.approvals.deny(id);
      break;
    }
  }
  assert.deepEqual(seen, ["a.test:443", "b.test:443"]);
  await assert.rejects(client.approvals.allow(first.id), { code: "APPROVAL_DECIDED" });
  assert.equal((await Array.fromAsync(client.approvals.list())).length, 0);
  const all = await Array.fromAsync(client.approvals.list({ all: true }));
  assert.deepEqual(
    all.map(({ state }) => state),
    ["denied", "allowed"],
  );
});

test("a secret goes in and its value never comes out", () =>
  withEach(async (client) => {
    const set = await client.secrets.set("TOKEN", { hosts: ["a.test"], value: "the-value" });
    assert.equal(set.source, "stored");
    assert.ok(!JSON.stringify(await client.secrets.list()).includes("the-value"));
    await assert.rejects(client.secrets.set("TOKEN", { hosts: ["a.test"], value: "v", env: "E" }), {
      code: "INVALID_INPUT",
    });
    await client.secrets.remove("TOKEN");
    assert.deepEqual(await client.secrets.list(), []);
  }));

test("importing the SDK loads neither the contract nor a transport", async () => {
  const { execFileSync } = await import("node:child_process");
  const script = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
    await import(${JSON.stringify(import.meta.resolve("../index.ts"))});
    console.log(loaded.filter((url) => /protobuf|_pb|transports|client\\.ts/.test(url)).join());`;
  const out = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  assert.equal(out.trim(), "");
  assert.equal(typeof connect, "function");
});
