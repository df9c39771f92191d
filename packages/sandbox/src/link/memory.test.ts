import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openGuest } from "./open.ts";
import { PatternSink } from "./testing/pattern-sink.ts";
import { spawnGuest } from "./testing/spawned-guest.ts";

const mebibyte = 1024 * 1024;

/** The most memory above the start while `run` is under way. */
async function peakGrowth(run: () => Promise<void>): Promise<number> {
  const before = memory();
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, memory() - before);
  }, 5);
  await run();
  clearInterval(timer);
  return Math.max(peak, memory() - before);
}

function memory(): number {
  return process.memoryUsage().rss;
}

test("a quarter of a gigabyte of output passes in bounded memory", async () => {
  await using child = await spawnGuest();
  const guest = await openGuest(child.connect);
  const sink = new PatternSink({ run: 1e9, delay: () => sleep(0) });
  const growth = await peakGrowth(async () => {
    await guest.start(
      { stream: guest.nextStream(), argv: ["pattern", String(256 * mebibyte), "1000000000"] },
      sink,
    );
    await sink.exit;
  });
  assert.equal(sink.position, 256 * mebibyte);
  assert.ok(sink.maxBehind <= mebibyte);
  assert.ok(growth < 64 * mebibyte, `${growth / mebibyte} MiB`);
  guest.close();
});

test("pieces of one byte, alternating, in front of a sink that stands still, take little memory", async () => {
  await using child = await spawnGuest();
  const guest = await openGuest(child.connect);
  let release!: () => void;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const sink = new PatternSink({ run: 1, delay: () => released });
  const growth = await peakGrowth(async () => {
    await guest.start({ stream: guest.nextStream(), argv: ["pattern", "500000", "1", "1"] }, sink);
    // Answers come behind what was sent before them: most of it is here then.
    for (let i = 0; i < 20; i += 1) await Promise.all([guest.ping(), sleep(20)]);
    assert.ok(sink.writes <= 256);
  });
  release();
  await sink.exit;
  assert.ok(growth < 64 * mebibyte, `${growth / mebibyte} MiB`);
  guest.close();
});

test("a hundred streams whose readers stand still hold a window each at most", async () => {
  await using child = await spawnGuest();
  const guest = await openGuest(child.connect);
  let held = 0;
  const stuck = () => ({
    position: 0,
    write: (_tag: 1 | 2, bytes: Uint8Array) => {
      held += bytes.length;
      return new Promise<void>(() => {});
    },
    exited() {},
  });
  const growth = await peakGrowth(async () => {
    for (let i = 0; i < 100; i += 1) {
      await guest.start(
        { stream: guest.nextStream(), argv: ["pattern", "1000000000", "1000000000"] },
        stuck(),
      );
    }
    const sink = new PatternSink({ run: 100 });
    await guest.start({ stream: guest.nextStream(), argv: ["pattern", "3000000", "100"] }, sink);
    await sink.exit;
    while (held < 100 * mebibyte) await sleep(5);
    await guest.ping();
  });
  assert.equal(held, 100 * mebibyte);
  assert.ok(growth < 200 * mebibyte, `${growth / mebibyte} MiB`);
  guest.close();
});
