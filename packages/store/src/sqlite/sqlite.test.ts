import assert from "node:assert/strict";
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import type { NewEvent, StoredEvent } from "../store.ts";
import { openSqliteStore } from "./index.ts";
import { scratch } from "./testing/scratch.ts";

const event = (n: number): NewEvent => ({
  type: `test.t${n % 3}`,
  actor: "test",
  sandboxId: `sb_${n % 2}`,
  data: { n },
});
const codeIs = (code: string) => (error: unknown) => error instanceof CaissonError && error.code === code;

async function take(events: AsyncIterable<StoredEvent>, count: number): Promise<number[]> {
  const seqs: number[] = [];
  for await (const { seq } of events) if (seqs.push(seq) === count) break;
  return seqs;
}

test("events have consecutive numbers and state changes with them", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  const [first] = await store.commit([event(1), event(2)], [{ put: "k", key: "a", value: { x: 1 } }]);
  assert.equal(first?.seq, 1);
  assert.equal(store.head, 2);
  assert.deepEqual(store.get("k", "a"), { x: 1 });
  await store.commit([], [{ remove: "k", key: "a" }]);
  assert.equal(store.get("k", "a"), undefined);
  assert.equal(store.head, 2);
  await store.close();
});

test("a scan gives every key of a prefix in order, over pages", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  const keys = Array.from({ length: 1201 }, (_, n) => `p/${String(n).padStart(5, "0")}`);
  await store.commit(
    [],
    [...keys, "p", "o", "q/1", "p/"].map((key) => ({ put: "k", key, value: key })),
  );
  assert.deepEqual(
    [...store.scan("k", "p/")].map(([key]) => key),
    ["p/", ...keys],
  );
  assert.equal([...store.scan("k")].length, keys.length + 4);
  assert.deepEqual([...store.scan("other")], []);
  await store.close();
});

test("subscribers resume from any number without gap or duplicate, filtered or not", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  const total = 3000;
  const stop = new AbortController();
  const subscriptions = [0, 1, 500, 1499, 2500].map((from) =>
    take(store.subscribe({ from }, stop.signal), total - from),
  );
  const ofOne = take(store.subscribe({ from: 0, sandboxId: "sb_1" }, stop.signal), total / 2);
  const ofType = take(store.subscribe({ from: 0, types: ["test.t1", "nothing"] }, stop.signal), total / 3);
  for (let n = 1; n <= total; ) {
    const batch = Array.from({ length: Math.min(1 + Math.floor(Math.random() * 40), total - n + 1) }, () =>
      event(n++),
    );
    const committed = store.commit(batch);
    if (Math.random() < 0.5) await committed;
  }
  const range = (from: number) => Array.from({ length: total - from }, (_, index) => from + 1 + index);
  const results = await Promise.all(subscriptions);
  for (const [index, from] of [0, 1, 500, 1499, 2500].entries())
    assert.deepEqual(results[index], range(from));
  assert.deepEqual(
    await ofOne,
    range(0).filter((seq) => seq % 2 === 1),
  );
  assert.deepEqual(
    await ofType,
    range(0).filter((seq) => seq % 3 === 1),
  );
  await store.close();
});

test("a thousand subscribers cost little and all get everything", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  const stop = new AbortController();
  const before = process.memoryUsage().rss;
  const all = Array.from({ length: 1000 }, () => take(store.subscribe({ from: 0 }, stop.signal), 200));
  for (let n = 1; n <= 200; n++) await store.commit([event(n)]);
  for (const seqs of await Promise.all(all)) assert.equal(seqs.at(-1), 200);
  assert.ok(process.memoryUsage().rss - before < 150 * 1024 * 1024);
  await store.close();
});

test("an aborted subscription ends", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  const stop = new AbortController();
  const waiting = take(store.subscribe({ from: 0 }, stop.signal), 1);
  stop.abort();
  assert.deepEqual(await waiting, []);
  const closed = take(store.subscribe({ from: 0 }, new AbortController().signal), 1);
  await store.close();
  assert.deepEqual(await closed, []);
});

test("retention drops the oldest, and the rest can still be verified", async () => {
  using place = scratch();
  let store = await openSqliteStore({ file: place.file });
  for (let n = 0; n < 50; n++) await store.commit(Array.from({ length: 50 }, () => event(n)));
  await store.close();
  store = await openSqliteStore({ file: place.file, retention: { maxEvents: 100 } });
  while (store.read({ from: 0, limit: 1 })[0]!.seq !== 2401)
    await new Promise((resolve) => setTimeout(resolve, 50));
  const { intact, checked } = await store.verify(0);
  assert.deepEqual({ intact, checked }, { intact: true, checked: 100 });
  await store.commit([event(1)]);
  await store.close();
  store = await openSqliteStore({ file: place.file });
  assert.equal(store.head, 2501);
  assert.ok((await store.verify(2450)).intact);
  await store.close();
});

test("retention drops what is too old, whatever the number", async () => {
  using place = scratch();
  let store = await openSqliteStore({ file: place.file });
  await store.commit(Array.from({ length: 1000 }, () => event(1)));
  await store.close();
  await new Promise((resolve) => setTimeout(resolve, 20));
  store = await openSqliteStore({ file: place.file, retention: { maxAgeMs: 10 } });
  while ((store.read({ from: 0, limit: 1 })[0]?.seq ?? 1001) < 900)
    await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(store.head, 1000);
  await store.close();
});

test("one that cannot be kept as JSON is refused alone", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  const good = store.commit([event(1)]);
  await assert.rejects(store.commit([], [{ put: "k", key: "a", value: undefined }]), TypeError);
  assert.equal((await good)[0]?.seq, 1);
  await store.close();
});

test("a failed sync ends acknowledging for good; reading goes on", async () => {
  using place = scratch();
  let fail = false;
  const store = await openSqliteStore({
    file: place.file,
    sync: (_fd, done) =>
      setImmediate(() => done(fail ? Object.assign(new Error("EIO"), { code: "EIO" }) : null)),
  });
  await store.commit([event(1)]);
  fail = true;
  await assert.rejects(store.commit([event(2)]), codeIs("STORAGE_FAILED"));
  fail = false;
  await assert.rejects(store.commit([event(3)]), codeIs("STORAGE_FAILED"));
  assert.equal(store.head, 1);
  assert.equal(store.read({ from: 0 }).length, 1);
  assert.match(store.trouble() ?? "", /restart the daemon/);
  await store.close();
});

test("what is flushed can be read at once, and is on disk when its commit resolves", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  const committed = store.commit([event(1)], [{ put: "k", key: "a", value: 1 }]);
  assert.equal(store.flush(), true);
  assert.equal(store.get("k", "a"), 1);
  assert.equal(store.head, 0);
  await committed;
  assert.equal(store.head, 1);
  await store.close();
});

test("what is flushed is there after the daemon's death, once, whether its transaction was made or not", async () => {
  using place = scratch();
  using died = scratch();
  const store = await openSqliteStore({ file: place.file });
  await store.commit([event(1)], [{ put: "k", key: "a", value: 1 }]);
  const committed = store.commit([event(2)], [{ put: "k", key: "a", value: 2 }]);
  const removed = store.commit([], [{ remove: "k", key: "b" }]);
  assert.equal(store.flush(), true);
  const ahead = readFileSync(`${place.file}-ahead`);
  assert.ok(ahead.length > 0);
  copyLog(place.file, died.file);
  const next = await openSqliteStore({ file: died.file });
  assert.deepEqual([next.head, next.get("k", "a")], [2, 2]);
  assert.ok((await next.verify(0)).intact);
  await next.close();

  await Promise.all([committed, removed]);
  await store.commit([], [{ put: "k", key: "a", value: 3 }]);
  // As if the daemon had died between the transaction and the emptying of the file.
  copyLog(place.file, died.file);
  writeFileSync(`${died.file}-ahead`, Buffer.concat([ahead, Buffer.from('{"number":')]));
  const last = await openSqliteStore({ file: died.file });
  assert.deepEqual([last.head, last.get("k", "a")], [2, 3]);
  await last.close();
  await store.close();
});

test("what was flushed before a reboot is not brought in: the database may have lost what came before", async () => {
  using place = scratch();
  const note = {
    number: 1,
    boot: "another",
    commits: [{ events: [], changes: [{ kind: "k", key: "a", json: "1" }] }],
  };
  writeFileSync(`${place.file}-ahead`, `${JSON.stringify(note)}\n`);
  const store = await openSqliteStore({ file: place.file });
  assert.equal(store.get("k", "a"), undefined);
  await store.close();
  assert.equal(readFileSync(`${place.file}-ahead`, "utf8"), "");
});

function copyLog(from: string, to: string): void {
  for (const suffix of ["", "-wal", "-ahead", "-boot"]) copyFileSync(`${from}${suffix}`, `${to}${suffix}`);
  rmSync(`${to}-shm`, { force: true });
}
