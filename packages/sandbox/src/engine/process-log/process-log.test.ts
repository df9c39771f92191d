import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { output } from "../testing/output.ts";
import { type LogItem, MemoryBudget, type Piece, ProcessLog, type ProcessLogOptions } from "./index.ts";

const KiB = 1024;
const MiB = 1024 * KiB;
const never = new AbortController().signal;

function scratch() {
  const dir = mkdtempSync(join(tmpdir(), "caisson-output-"));
  let inline: Piece[] = [];
  const budget = new MemoryBudget(8 * MiB);
  const options = (keepBytes = 256 * MiB): ProcessLogOptions => ({
    dir: join(dir, "p1"),
    keepBytes,
    budget,
    keepInline: (pieces) => {
      inline = pieces;
      return true;
    },
    loadInline: () => inline,
    onExit: () => {},
    onTrouble: () => {},
  });
  return { dir, budget, options, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

async function readAll(
  log: ProcessLog,
  from = 0,
  follow = true,
): Promise<{ bytes: Buffer; gaps: LogItem[] }> {
  const pieces: Uint8Array[] = [];
  const gaps: LogItem[] = [];
  let position = from;
  for await (const item of log.read(from, { follow, hold: false, signal: never })) {
    if ("missing" in item) {
      assert.equal(item.position, position + item.missing);
      position = item.position;
      gaps.push(item);
    } else {
      assert.equal(item.from, position);
      position += item.bytes.length;
      pieces.push(item.bytes);
    }
  }
  return { bytes: Buffer.concat(pieces), gaps };
}

test("a small output makes no file and can be read from any position", async () => {
  using place = scratch();
  const log = ProcessLog.fresh(place.options());
  await Promise.all([log.write(1, output(0, 100)), log.write(2, output(100, 50))]);
  assert.equal(log.position, 150);
  log.exited({} as never);
  assert.deepEqual(readdirSync(place.dir), []);
  for (const from of [0, 1, 99, 100, 149, 150, 200]) {
    assert.deepEqual((await readAll(log, from)).bytes, Buffer.from(output(from, Math.max(0, 150 - from))));
  }
  assert.equal(place.budget.used, 0);
});

test("bytes are only lent: what the link does with its memory afterwards changes nothing", async () => {
  using place = scratch();
  const log = ProcessLog.fresh(place.options());
  const lent = Buffer.alloc(300 * KiB);
  for (let at = 0; at < 10 * lent.length; at += lent.length) {
    lent.set(output(at, lent.length));
    void log.write(1, lent);
    lent.fill(0);
  }
  while (log.position < log.end) await new Promise(setImmediate);
  log.exited({} as never);
  assert.ok((await readAll(log)).bytes.equals(output(0, 10 * lent.length)));
  await log.close();
});

test("an output that grows goes to files from its beginning", async () => {
  using place = scratch();
  const log = ProcessLog.fresh(place.options());
  let written = 0;
  for (const size of [10, 4000, 4000, 10, 70 * KiB, 3, 5]) {
    await log.write(written % 2 === 0 ? 1 : 2, output(written, size));
    written += size;
    assert.equal(log.position, written);
  }
  const again = ProcessLog.recover(place.options());
  assert.equal(again.position, written);
  again.finish();
  assert.deepEqual((await readAll(again)).bytes, Buffer.from(output(0, written)));
  await log.close();
});

test("readers who come at any time and any position see every byte once, while it is written", async () => {
  using place = scratch();
  const log = ProcessLog.fresh(place.options());
  const total = 6 * MiB;
  const readers: Promise<void>[] = [];
  let written = 0;
  while (written < total) {
    if (Math.random() < 0.1) {
      const from = Math.floor(Math.random() * (written + 1));
      readers.push(
        readAll(log, from).then(({ bytes }) => assert.ok(bytes.equals(output(from, total - from)))),
      );
    }
    const size = Math.min(total - written, 1 + Math.floor(Math.random() * 200 * KiB));
    const stored = log.write(Math.random() < 0.5 ? 1 : 2, output(written, size));
    written += size;
    if (Math.random() < 0.5) await stored;
  }
  while (log.position < total) await new Promise(setImmediate);
  log.exited({} as never);
  await Promise.all(readers);
  assert.ok(readers.length > 0);
  await log.close();
  assert.equal(place.budget.used, 0);
});

test("beyond the retention the oldest goes, and readers are told how much is missing", async () => {
  using place = scratch();
  const log = ProcessLog.fresh(place.options(MiB));
  for (let at = 0; at < 4 * MiB; at += 64 * KiB) await log.write(1, output(at, 64 * KiB));
  log.exited({} as never);
  assert.ok(log.firstKept > 2.9 * MiB);
  const { bytes, gaps } = await readAll(log);
  assert.equal(gaps.length, 1);
  assert.deepEqual(bytes, Buffer.from(output(log.firstKept, 4 * MiB - log.firstKept)));
  const again = ProcessLog.recover(place.options(MiB));
  assert.equal(again.firstKept, log.firstKept);
  assert.equal(again.position, 4 * MiB);
  await log.close();
});

test("a reader that holds gets everything although the retention is small; the writer waits for it", async () => {
  using place = scratch();
  const log = ProcessLog.fresh(place.options(256 * KiB));
  const total = 2 * MiB;
  const seen: Uint8Array[] = [];
  const reading = (async () => {
    for await (const item of log.read(0, { follow: true, hold: true, signal: never })) {
      assert.ok(!("missing" in item));
      seen.push(item.bytes);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  for (let at = 0; at < total; at += 32 * KiB) await log.write(1, output(at, 32 * KiB));
  log.exited({} as never);
  await reading;
  assert.deepEqual(Buffer.concat(seen), Buffer.from(output(0, total)));
  await log.close();
});

test("a record that was being written when the daemon died is cut off", async () => {
  using place = scratch();
  const log = ProcessLog.fresh(place.options());
  await log.write(1, output(0, 100 * KiB));
  await log.close();
  const file = join(place.dir, "p1", readdirSync(join(place.dir, "p1"))[0]!);
  const header = Buffer.alloc(5);
  header.writeUInt8(1);
  header.writeUInt32LE(1000, 1);
  appendFileSync(file, Buffer.concat([header, Buffer.alloc(400)]));
  const again = ProcessLog.recover(place.options());
  assert.equal(again.position, 100 * KiB);
  await again.write(1, output(100 * KiB, 50 * KiB));
  again.exited({} as never);
  assert.deepEqual((await readAll(again)).bytes, Buffer.from(output(0, 150 * KiB)));
  await again.close();
});

test("a hundred thousand one-byte writes on two streams stay within bounds", async () => {
  using place = scratch();
  const log = ProcessLog.fresh(place.options(2 * MiB));
  let most = 0;
  for (let at = 0; at < 100_000; at += 32) {
    const writes = Array.from({ length: 32 }, (_, n) => log.write(n % 2 === 0 ? 1 : 2, output(at + n, 1)));
    most = Math.max(most, place.budget.used);
    await Promise.all(writes);
  }
  log.exited({} as never);
  assert.ok(most < 64 * KiB);
  assert.deepEqual((await readAll(log)).bytes, Buffer.from(output(0, 100_000)));
  await log.close();
});
