import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ChangeKind, WorkspaceMode } from "@caisson/contract";
import { openSqliteStore } from "@caisson/store";
import { BubblewrapDriver } from "../../driver/bubblewrap/driver.ts";
import { Bench } from "../../keeper/testing.ts";
import { openGuest } from "../../link/open.ts";
import { Pool } from "../../pool/pool.ts";
import type { Engine } from "../engine.ts";
import { openEngine } from "../index.ts";
import { call } from "../testing/rig.ts";
import { makeLayer } from "../workspace.ts";

/** One that takes no mounts after the launch, as most do. */
class MountlessDriver extends BubblewrapDriver {
  override readonly capabilities = [] as never;
}

const self = { name: "whoever runs the tests", uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

async function openMountless(bench: Bench): Promise<Engine & AsyncDisposable> {
  const drivers = [new MountlessDriver({ keeper: bench.keeper, guest: bench.guest })];
  const home = join(bench.dir, "home");
  await mkdir(home);
  const store = await openSqliteStore({ file: join(home, "log.db") });
  const pool = new Pool({
    drivers,
    max: 0,
    async prepare(place) {
      const dir = join(home, "sandboxes", place);
      await mkdir(dir, { recursive: true });
      makeLayer(dir);
      return { dir, cgroups: [] };
    },
    onLaunched() {},
    onGone: (place) => void bench.keeper.removeTree(join(home, "sandboxes", place)),
  });
  const engine = await openEngine({
    home,
    store,
    drivers,
    pool,
    guest: bench.guest,
    cgroups: { cgroups: undefined, reason: "the test has none" },
    openGuest: (launched, sinks) => openGuest(() => launched.connect(), { sinks, ended: launched.ended }),
    trees: {
      remove: async (path) => Number(await bench.keeper.removeTree(path)),
      size: async () => 0,
      measure: async () => ({ bytes: 0, files: 0 }),
    },
  });
  return Object.assign(engine, {
    async [Symbol.asyncDispose]() {
      const { sandboxes } = await engine.list({ all: false, labels: {}, pageSize: 100, pageToken: "" });
      for (const { id } of sandboxes) await engine.end(id, { reason: "deleted", forget: true }, call);
      await engine.close();
      await store.close();
    },
  });
}

async function sh(engine: Engine, sandboxId: string, script: string): Promise<string> {
  const { id } = await engine.start(sandboxId, { argv: ["sh", "-euc", script] }, { key: "" }, call);
  let output = "";
  for await (const { event } of engine.attach(sandboxId, id, {
    from: 0n,
    follow: true,
    signal: call.signal,
  })) {
    if (event.case === "stdout" || event.case === "stderr")
      output += Buffer.from(event.value.data).toString();
    if (event.case === "exit") assert.equal(event.value.code, 0, output);
  }
  return output;
}

async function changes(engine: Engine, sandboxId: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const change of engine.changes.list(sandboxId, { patch: false, paths: [] }))
    found[Buffer.from(change.path!).toString()] = nameOf(change.kind!);
  return found;
}

function nameOf(kind: ChangeKind): string {
  return Object.entries(ChangeKind)
    .find(([, number]) => number === kind)![0]
    .toLowerCase();
}

/** A project with what is awkward to send: links that lead out, names that are not UTF-8, closed directories. */
function makeProject(bench: Bench): string {
  const dir = mkdtempSync(join(bench.dir, "project-"));
  mkdirSync(join(dir, "src/deep"), { recursive: true });
  mkdirSync(join(dir, "bin"));
  writeFileSync(join(dir, "src/a.txt"), "a\n");
  writeFileSync(join(dir, "src/deep/b.txt"), "b\n");
  writeFileSync(join(dir, "keep.txt"), "kept\n");
  writeFileSync(Buffer.concat([Buffer.from(join(dir, "odd-")), Buffer.of(0xff)]), "odd\n");
  writeFileSync(join(dir, "bin/run"), "#!/bin/sh\n", { mode: 0o755 });
  symlinkSync("/usr/bin/python3", join(dir, "bin/python"));
  symlinkSync("../../elsewhere", join(dir, "bin/out"));
  return dir;
}

test("a project travels in over the link, and what is changed comes back as a copy's changes do", async () => {
  await using bench = new Bench(self);
  await using engine = await openMountless(bench);
  const dir = makeProject(bench);
  const sandbox = await engine.create({ workspace: { dir } }, { key: "" }, call);
  assert.equal(sandbox.workspace?.mode, WorkspaceMode.COPY);
  assert.equal(
    await sh(engine, sandbox.id, "pwd; cat src/a.txt; readlink bin/python bin/out; test -x bin/run"),
    `${dir}\na\n/usr/bin/python3\n../../elsewhere\n`,
  );
  assert.deepEqual(await changes(engine, sandbox.id), {});

  // The same size and the same time as before: only the inode's own clock tells.
  await sh(
    engine,
    sandbox.id,
    "touch -r src/a.txt /tmp/t; echo A > src/a.txt; touch -r /tmp/t src/a.txt; echo new > new.txt; rm keep.txt",
  );
  assert.deepEqual(await changes(engine, sandbox.id), {
    "keep.txt": "deleted",
    "new.txt": "added",
    "src/a.txt": "modified",
  });
  await sh(
    engine,
    sandbox.id,
    "echo kept > keep.txt; mv src/deep src/moved; rm bin/run; mkdir bin/run; rm new.txt",
  );
  assert.deepEqual(await changes(engine, sandbox.id), {
    "bin/run": "modified",
    "src/a.txt": "modified",
    "src/deep": "deleted",
    "src/moved": "added",
    "src/moved/b.txt": "renamed",
  });
  assert.equal(readFileSync(join(dir, "src/a.txt"), "utf8"), "a\n");
  const { files } = await engine.changes.apply(sandbox.id, { paths: ["src/**"], dryRun: false }, call);
  assert.ok(files.length > 0);
  assert.equal(readFileSync(join(dir, "src/a.txt"), "utf8"), "A\n");
  assert.equal(readFileSync(join(dir, "src/moved/b.txt"), "utf8"), "b\n");
});

test("what a sandbox changed last is fetched before it goes, also from one that ends with its command", async () => {
  await using bench = new Bench(self);
  await using engine = await openMountless(bench);
  const dir = makeProject(bench);
  const argv = ["sh", "-c", "echo result > result.txt"];
  const run = await engine.run({ workspace: { dir } }, { argv }, { key: "" }, call);
  await engine.wait(run.sandboxId, run.id, call.signal);
  assert.deepEqual(await changes(engine, run.sandboxId), { "result.txt": "added" });
  await engine.changes.apply(run.sandboxId, { paths: [], dryRun: false }, call);
  assert.equal(readFileSync(join(dir, "result.txt"), "utf8"), "result\n");
});

test("a mode that the driver cannot have is refused, and so is a project that does not fit", async () => {
  await using bench = new Bench(self);
  await using engine = await openMountless(bench);
  const dir = makeProject(bench);
  for (const mode of [WorkspaceMode.OVERLAY, WorkspaceMode.BIND]) {
    const made = engine.create({ workspace: { dir, mode } }, { key: "" }, call);
    await assert.rejects(made, { code: "WORKSPACE_REFUSED", message: /workspace\.mode/ });
  }
  writeFileSync(join(dir, "large"), Buffer.alloc(3 << 20, 1));
  const small = engine.create({ workspace: { dir }, limits: { diskBytes: 1n << 20n } }, { key: "" }, call);
  await assert.rejects(small, { code: "WORKSPACE_REFUSED", message: /workspace\.size/ });
});

test("a sparse file that is larger than the sandbox's disk is not fetched", async () => {
  await using bench = new Bench(self);
  await using engine = await openMountless(bench);
  const dir = makeProject(bench);
  const sandbox = await engine.create(
    { workspace: { dir }, limits: { diskBytes: 64n << 20n } },
    { key: "" },
    call,
  );
  await sh(engine, sandbox.id, "truncate -s 1T bomb");
  await assert.rejects(changes(engine, sandbox.id), { code: "TOO_LARGE" });
  await sh(engine, sandbox.id, "rm bomb; echo fine > fine.txt");
  assert.deepEqual(await changes(engine, sandbox.id), { "fine.txt": "added" });
});
