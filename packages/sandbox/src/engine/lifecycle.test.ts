import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CaissonError, SandboxState } from "@caisson/contract";
import { kinds, type SandboxRecord } from "./records.ts";
import { call, openRig, type Rig } from "./testing/rig.ts";

const codeIs = (code: string) => (error: unknown) => error instanceof CaissonError && error.code === code;
const endedBy = async (rig: Rig, id: string, reason: string) => {
  for (;;) {
    const { state, endReason } = await rig.engine.get(id);
    if (state === SandboxState.ENDED) return assert.equal(endReason, reason);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

test("a sandbox in which nothing runs ends when it has been idle for long enough", async () => {
  await using rig = await openRig();
  const idle = await rig.engine.create({ idleTtlS: 1 }, { key: "" }, call);
  const busy = await rig.engine.create({ idleTtlS: 1 }, { key: "" }, call);
  await rig.engine.start(busy.id, { argv: ["hang"] }, { key: "" }, call);
  assert.ok(idle.expiresAt !== undefined);
  await endedBy(rig, idle.id, "idle");
  assert.equal((await rig.engine.get(busy.id)).state, SandboxState.READY);
});

test("a sandbox ends at its maximum age whatever it does, unless that is extended", async () => {
  await using rig = await openRig();
  const short = await rig.engine.create({ maxAgeS: 1 }, { key: "" }, call);
  const longer = await rig.engine.create({ maxAgeS: 1 }, { key: "" }, call);
  await rig.engine.start(short.id, { argv: ["hang"] }, { key: "" }, call);
  await rig.engine.extend(longer.id, { idleTtlS: 0, maxAgeS: 0xffffffff }, call);
  await endedBy(rig, short.id, "max_age");
  assert.equal((await rig.engine.get(longer.id)).state, SandboxState.READY);
});

test("after a restart of the host every sandbox has ended, and every command has its exit", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  const hang = await rig.engine.start(id, { argv: ["hang"] }, { key: "" }, call);
  const record = rig.store.get<SandboxRecord>(kinds.sandbox, id)!;
  await rig.store.commit([], [{ put: kinds.sandbox, key: id, value: { ...record, bootId: "another" } }]);
  await rig.restart();
  await endedBy(rig, id, "host_rebooted");
  assert.equal((await rig.engine.process(id, hang.id)).exit?.lost, "host_rebooted");
});

test("directories that belong to no sandbox are removed at the start", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  const stray = join(rig.home, "sandboxes/sb_00000000000000000".slice(0, -1));
  mkdirSync(join(stray, "layer"), { recursive: true });
  await rig.restart();
  while (existsSync(stray)) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(existsSync(join(rig.home, "sandboxes", id)));
});

test("what is kept of ended sandboxes can be seen and freed", async () => {
  await using rig = await openRig();
  for (let n = 0; n < 3; n++) {
    const { id } = await rig.engine.create({}, { key: "" }, call);
    const process = await rig.engine.start(id, { argv: ["pattern", "20000", "100"] }, { key: "" }, call);
    await rig.engine.wait(id, process.id, call.signal);
    await rig.engine.end(id, { reason: "deleted", forget: false }, call);
  }
  const ended = (await rig.engine.usage()).find((item) => item.what === "ended");
  assert.equal(ended?.count, 3);
  assert.equal((await rig.engine.prune(call, false)).sandboxes, 3);
  const left = await rig.engine.list({ labels: {}, all: true, pageSize: 0, pageToken: "" });
  assert.deepEqual(left.sandboxes, []);
  assert.deepEqual([...rig.store.scan(kinds.process)], []);
  assert.deepEqual([...rig.store.scan(kinds.output)], []);
});

test("deleting twice forgets, and a repeated call with its key does not", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  const end = (key: string) => rig.engine.end(id, { reason: "deleted", forget: false, key }, call);
  assert.equal((await end("k")).state, SandboxState.ENDED);
  assert.equal((await end("k")).state, SandboxState.ENDED);
  assert.equal((await rig.engine.get(id)).id, id);
  await end("");
  await assert.rejects(rig.engine.get(id), codeIs("SANDBOX_NOT_FOUND"));
  await assert.rejects(end(""), codeIs("SANDBOX_NOT_FOUND"));
});

test("input is taken once, in order, by its offset", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  const cat = await rig.engine.start(id, { argv: ["cat"], keepStdin: true }, { key: "" }, call);
  const write = (offset: bigint, text: string, end = false) =>
    rig.engine.writeStdin(id, cat.id, { offset, data: Buffer.from(text), end });
  assert.equal(await write(0n, "abc"), 3n);
  assert.equal(await write(0n, "abc"), 3n);
  assert.equal(await write(1n, "bcde"), 5n);
  await assert.rejects(write(9n, "x"), codeIs("INVALID_INPUT"));
  assert.equal(await write(5n, "f", true), 6n);
  assert.equal((await rig.engine.wait(id, cat.id, call.signal)).seq, 6n);
  await assert.rejects(write(6n, "x"), codeIs("PROCESS_ENDED"));
  const closed = await rig.engine.start(id, { argv: ["hang"] }, { key: "" }, call);
  await assert.rejects(
    rig.engine.writeStdin(id, closed.id, { offset: 0n, data: Buffer.from("x"), end: false }),
    codeIs("STDIN_CLOSED"),
  );
});

test("signals have names, and only a process that runs gets them", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  const hang = await rig.engine.start(id, { argv: ["hang"] }, { key: "" }, call);
  await assert.rejects(rig.engine.signal(id, hang.id, "SIGNOPE", call), codeIs("INVALID_INPUT"));
  await assert.rejects(rig.engine.resize(id, hang.id, 80, 24), codeIs("NO_TERMINAL"));
  await rig.engine.signal(id, hang.id, "term", call);
  const { exit } = await rig.engine.wait(id, hang.id, call.signal);
  assert.equal(exit?.code, 143);
  assert.equal(exit?.signal, "SIGTERM");
  await assert.rejects(rig.engine.signal(id, hang.id, "KILL", call), codeIs("PROCESS_ENDED"));
  await assert.rejects(rig.engine.process(id, "p99"), codeIs("PROCESS_NOT_FOUND"));
});

test("commands and specs that make no sense are refused before anything happens", async () => {
  await using rig = await openRig();
  const { id } = await rig.engine.create({}, { key: "" }, call);
  const start = (command: object) => rig.engine.start(id, command, { key: "" }, call);
  await assert.rejects(start({ argv: [] }), codeIs("INVALID_INPUT"));
  await assert.rejects(start({ argv: ["a\0b"] }), codeIs("INVALID_INPUT"));
  await assert.rejects(start({ argv: ["hang"], cwd: "../../.." }), codeIs("PATH_LEAVES_ROOT"));
  await assert.rejects(start({ argv: ["hang"], env: { "A=B": "1" } }), codeIs("INVALID_INPUT"));
  await assert.rejects(start({ argv: ["hang"], user: "daemon" }), codeIs("INVALID_INPUT"));
  await assert.rejects(start({ argv: ["a", "b"], shellState: true }), codeIs("INVALID_INPUT"));
  await assert.rejects(start({ argv: ["x".repeat(2_000_000)] }), codeIs("TOO_LARGE"));
  const create = (spec: object) => rig.engine.create(spec, { key: "" }, call);
  await assert.rejects(create({ image: "alpine" }), codeIs("NO_DRIVER"));
  await assert.rejects(create({ image: "a\nb" }), codeIs("INVALID_INPUT"));
  await assert.rejects(create({ profile: "nope" }), codeIs("INVALID_INPUT"));
  await assert.rejects(create({ driver: "nope" }), codeIs("NO_DRIVER"));
  await assert.rejects(create({ minimumTier: 3 }), codeIs("NO_DRIVER"));
  await assert.rejects(create({ limits: { cpuMillis: 500 } }), codeIs("NOT_ENFORCEABLE"));
  await assert.rejects(create({ labels: { "A B": "1" } }), codeIs("INVALID_INPUT"));
  await assert.rejects(create({ syscalls: ["ptrace"] }), codeIs("INVALID_INPUT"));
  assert.equal(rig.driver.alive.size, 1);
});

test("a queued sandbox that is ended while its place is given leaves nothing behind", async () => {
  await using rig = await openRig({
    admission: { sandboxes: 1, queue: 5, memoryPercent: 10_000, cpuPercent: 10_000 },
  });
  for (let turns = 0; turns < 12; turns++) {
    const first = await rig.engine.create({}, { key: "" }, call);
    const queued = await rig.engine.create({}, { key: "", wait: false }, call);
    const freed = rig.engine.end(first.id, { reason: "deleted", forget: true }, call);
    for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
    await rig.engine.end(queued.id, { reason: "deleted", forget: false }, call);
    await freed;
    while (rig.driver.alive.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
});
