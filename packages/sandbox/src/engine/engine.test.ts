import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CaissonError, type ProcessEvent, SandboxState } from "@caisson/contract";
import type { Engine } from "./engine.ts";
import { output } from "./testing/output.ts";
import { call, openRig } from "./testing/rig.ts";

const follow = { from: 0n, follow: true, signal: call.signal };

async function collect(events: AsyncIterable<ProcessEvent>): Promise<ProcessEvent[]> {
  const all: ProcessEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

function outputOf(events: ProcessEvent[]): Buffer {
  return Buffer.concat(
    events.map(({ event }) =>
      event.case === "stdout" || event.case === "stderr" ? event.value.data : Buffer.of(),
    ),
  );
}

async function exec(engine: Engine, sandboxId: string, argv: string[]): Promise<ProcessEvent[]> {
  const process = await engine.start(sandboxId, { argv }, { key: "" }, call);
  return collect(engine.attach(sandboxId, process.id, follow));
}

const codeIs = (code: string) => (error: unknown) => error instanceof CaissonError && error.code === code;

test("a sandbox is created, runs a command and ends", async () => {
  await using rig = await openRig();
  const sandbox = await rig.engine.create({}, { key: "" }, call);
  assert.match(sandbox.id, /^sb_[0-9a-z]{16}$/);
  assert.equal(sandbox.state, SandboxState.READY);
  assert.equal(sandbox.profile, "moderate");
  assert.equal(sandbox.workdir, "/home/agent");
  assert.ok(sandbox.enforced?.mechanisms.some((mechanism) => mechanism.name === "seccomp"));

  const events = await exec(rig.engine, sandbox.id, ["pattern", "1000", "100"]);
  assert.equal(events[0]?.event.case, "started");
  assert.deepEqual(outputOf(events), Buffer.from(output(0, 1000)));
  const last = events.at(-1)!;
  assert.equal(last.event.case, "exit");
  assert.equal(last.seq, 1000n);

  const ended = await rig.engine.end(sandbox.id, { reason: "deleted", forget: false }, call);
  assert.equal(ended.state, SandboxState.ENDED);
  assert.equal(ended.endReason, "deleted");
  assert.equal(rig.driver.alive.size, 0);
  const types = rig.store.read({ from: 0 }).map((event) => event.type);
  assert.deepEqual(types, [
    "sandbox.starting",
    "sandbox.ready",
    "process.started",
    "process.exited",
    "sandbox.ended",
  ]);
});

test("output of an ended sandbox can still be read, and is gone when it is forgotten", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  await exec(rig.engine, id, ["pattern", "300000", "1000"]);
  await exec(rig.engine, id, ["pattern", "10", "5"]);
  await rig.engine.end(id, { reason: "deleted", forget: false }, call);
  const large = await collect(rig.engine.attach(id, "p1", follow));
  assert.deepEqual(outputOf(large), Buffer.from(output(0, 300_000)));
  const small = await collect(rig.engine.attach(id, "p2", { ...follow, from: 4n }));
  assert.deepEqual(outputOf(small), Buffer.from(output(4, 6)));
  assert.equal((await rig.engine.processes(id)).length, 2);
  await rig.engine.end(id, { reason: "deleted", forget: true }, call);
  await assert.rejects(rig.engine.get(id), codeIs("SANDBOX_NOT_FOUND"));
  assert.ok(!existsSync(join(rig.home, "sandboxes", id)));
});

test("a run ends its sandbox when its command has exited", async () => {
  await using rig = await openRig();
  const process = await rig.engine.run({}, { argv: ["exit", "3"] }, { key: "" }, call);
  const events = await collect(rig.engine.attach(process.sandboxId, process.id, follow));
  const exit = events.at(-1)!.event;
  assert.ok(exit.case === "exit" && exit.value.code === 3);
  while ((await rig.engine.get(process.sandboxId)).state !== SandboxState.ENDED)
    await new Promise(setImmediate);
  assert.equal((await rig.engine.get(process.sandboxId)).endReason, "run_finished");
});

test("a command that is not there leaves no process", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  await assert.rejects(
    rig.engine.start(id, { argv: ["nope"] }, { key: "" }, call),
    codeIs("COMMAND_NOT_FOUND"),
  );
  assert.deepEqual(await rig.engine.processes(id), []);
  await assert.rejects(
    rig.engine.run({}, { argv: ["nope"] }, { key: "" }, call),
    codeIs("COMMAND_NOT_FOUND"),
  );
});

test("a repeated call with the same key does not act again", async () => {
  await using rig = await openRig();
  const first = await rig.engine.create({ labels: { a: "1" } }, { key: "k" }, call);
  const second = await rig.engine.create({ labels: { a: "1" } }, { key: "k" }, call);
  assert.equal(second.id, first.id);
  await assert.rejects(rig.engine.create({}, { key: "k" }, call), codeIs("IDEMPOTENCY_CONFLICT"));
  const start = () => rig.engine.start(first.id, { argv: ["exit", "0"] }, { key: "s" }, call);
  const [one, two] = await Promise.all([start(), start()]);
  assert.equal(one.id, two.id);
  await rig.restart();
  assert.equal((await start()).id, one.id);
  assert.equal((await rig.engine.create({ labels: { a: "1" } }, { key: "k" }, call)).id, first.id);
});

test("a daemon that comes back goes on with sandboxes, processes and their output", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  const cat = await rig.engine.start(id, { argv: ["cat"], keepStdin: true }, { key: "" }, call);
  await rig.engine.writeStdin(id, cat.id, { offset: 0n, data: Buffer.from("hello "), end: false });
  await rig.restart();
  const sandbox = await rig.engine.get(id);
  assert.equal(sandbox.state, SandboxState.READY);
  // The first bytes again: recognised by their offset.
  const data = Buffer.from("hello world");
  assert.equal(await rig.engine.writeStdin(id, cat.id, { offset: 0n, data, end: true }), 11n);
  const events = await collect(rig.engine.attach(id, cat.id, follow));
  assert.equal(outputOf(events).toString(), "hello world");
  assert.equal((await rig.engine.wait(id, cat.id, call.signal)).exit?.code, 0);
});

test("a sandbox that died while the daemon was away has ended, and its commands have one exit", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  const hang = await rig.engine.start(id, { argv: ["hang"] }, { key: "" }, call);
  await rig.engine.close();
  await rig.driver.alive.get(id)!.die("killed by the test");
  await rig.restart();
  const sandbox = await rig.engine.get(id);
  assert.equal(sandbox.state, SandboxState.ENDED);
  assert.equal(sandbox.endReason, "guest_died");
  const events = await collect(rig.engine.attach(id, hang.id, follow));
  const exits = events.filter(({ event }) => event.case === "exit");
  assert.equal(exits.length, 1);
  assert.ok(exits[0]!.event.case === "exit" && exits[0]!.event.value.lost === "guest_lost");
});

test("a guest that dies ends its sandbox", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  const hang = await rig.engine.start(id, { argv: ["hang"] }, { key: "" }, call);
  const waiting = rig.engine.wait(id, hang.id, call.signal);
  await rig.driver.alive.get(id)!.die("killed by the test");
  assert.equal((await waiting).exit?.lost, "guest_lost");
  await assert.rejects(rig.engine.start(id, { argv: ["hang"] }, { key: "" }, call), codeIs("SANDBOX_ENDED"));
});

test("sandboxes beyond the bound wait in order, and too many are refused", async () => {
  await using rig = await openRig({
    admission: { sandboxes: 1, queue: 1, memoryPercent: 10_000, cpuPercent: 10_000 },
  });
  const first = await rig.engine.create({}, { key: "" }, call);
  const queued = await rig.engine.create({}, { key: "", wait: false }, call);
  assert.equal(queued.state, SandboxState.QUEUED);
  await assert.rejects(rig.engine.create({}, { key: "" }, call), codeIs("QUEUE_FULL"));
  const started = rig.engine.start(queued.id, { argv: ["exit", "0"] }, { key: "" }, call);
  await rig.engine.end(first.id, { reason: "deleted", forget: false }, call);
  assert.equal((await started).sandboxId, queued.id);
});

test("a queued sandbox still waits after a restart", async () => {
  await using rig = await openRig({
    admission: { sandboxes: 1, queue: 5, memoryPercent: 10_000, cpuPercent: 10_000 },
  });
  const first = await rig.engine.create({}, { key: "" }, call);
  const queued = await rig.engine.create({}, { key: "", wait: false }, call);
  await rig.restart();
  assert.equal((await rig.engine.get(queued.id)).state, SandboxState.QUEUED);
  await rig.engine.end(first.id, { reason: "deleted", forget: false }, call);
  await rig.engine.start(queued.id, { argv: ["exit", "0"] }, { key: "" }, call);
});

test("a session is one sandbox under a name, whatever the case, and keeps its spec", async () => {
  await using rig = await openRig();
  const [one, two] = await Promise.all([
    rig.engine.openSession("Work", { labels: { a: "1" } }, call),
    rig.engine.openSession("work", { labels: { a: "1" } }, call),
  ]);
  assert.equal(one.session.sandbox?.id, two.session.sandbox?.id);
  assert.deepEqual([one.created, two.created].sort(), [false, true]);
  await assert.rejects(
    rig.engine.openSession("WORK", { labels: { a: "2" } }, call),
    codeIs("SESSION_CONFLICT"),
  );
  assert.equal((await rig.engine.openSession("work", {}, call)).created, false);
  const process = await rig.engine.run({}, { argv: ["exit", "0"] }, { key: "", session: "work" }, call);
  assert.equal(process.sandboxId, one.session.sandbox?.id);
  assert.equal((await rig.engine.get("session:wOrK")).session, "Work");
  await rig.engine.closeSession("work", call);
  await assert.rejects(rig.engine.get("session:work"), codeIs("SESSION_NOT_FOUND"));
});

test("a listing gives pages, newest first, without gap or duplicate", async () => {
  await using rig = await openRig();
  const made: string[] = [];
  for (let index = 0; index < 5; index++) {
    made.unshift((await rig.engine.create({ labels: { n: String(index % 2) } }, { key: "" }, call)).id);
  }
  const seen: string[] = [];
  for (let pageToken = ""; ; ) {
    const page = await rig.engine.list({ labels: {}, all: false, pageSize: 2, pageToken });
    seen.push(...page.sandboxes.map((sandbox) => sandbox.id));
    pageToken = page.nextPageToken;
    if (pageToken === "") break;
  }
  assert.deepEqual(seen.toSorted(), made.toSorted());
  const labelled = await rig.engine.list({ labels: { n: "1" }, all: false, pageSize: 0, pageToken: "" });
  assert.equal(labelled.sandboxes.length, 2);
});

test("a thousand races of stop, start, delete and exec leave one terminal state and nothing else", async () => {
  await using rig = await openRig();
  for (let round = 0; round < 40; round++) {
    const { id } = await rig.engine.create({}, { key: "" }, call);
    await Promise.allSettled([
      ...Array.from({ length: 10 }, () => exec(rig.engine, id, ["pattern", "100", "10"])),
      ...Array.from({ length: 5 }, () => rig.engine.start(id, { argv: ["hang"] }, { key: "" }, call)),
      ...Array.from({ length: 10 }, async (_, index) => {
        for (let turn = 0; turn < index; turn++) await new Promise(setImmediate);
        await rig.engine.end(id, { reason: "deleted", forget: false }, call);
      }),
    ]);
    const ended = rig.store.read({ from: 0, sandboxId: id, types: ["sandbox.ended"] });
    assert.equal(ended.length, 1);
    const exits = rig.store.read({ from: 0, sandboxId: id, types: ["process.exited", "process.failed"] });
    assert.equal(new Set(exits.map((event) => event.processId)).size, exits.length);
  }
  assert.equal(rig.driver.alive.size, 0);
});
