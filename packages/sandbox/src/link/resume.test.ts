import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openGuest } from "./open.ts";
import { cutAfter } from "./testing/cut-after.ts";
import { FakeGuest } from "./testing/fake-guest.ts";
import { PatternSink } from "./testing/pattern-sink.ts";
import { Random } from "./testing/random.ts";

/** So many attempts at no cost that only what a test cuts decides. */
const patient = { reconnectDelaysMs: new Array(500).fill(0) };

test("output arrives whole and once, wherever the link is cut", async () => {
  for (let seed = 1; seed <= 25; seed += 1) {
    const random = new Random(seed);
    await using fake = await new FakeGuest().listen();
    let cuts = random.int(1, 12);
    const guest = await openGuest(async () => {
      const socket = await fake.connect();
      cuts -= 1;
      // The first bytes are the hello; a cut in the middle of it is one of the places.
      return cuts < 0 ? socket : cutAfter(socket, random.int(1, 400_000));
    }, patient);
    const sinks = [1, 2, 3].map(() => {
      const delay = random.pick([undefined, () => sleep(random.int(0, 2))]);
      return new PatternSink({ run: 777, ...(delay ? { delay } : {}) });
    });
    const started = sinks.map((sink) =>
      guest.start({ stream: guest.nextStream(), argv: ["pattern", "900000", "777", "5000"] }, sink),
    );
    assert.deepEqual(
      (await Promise.all(started)).map(({ pid }) => pid),
      [101, 102, 103],
      `seed ${seed}`,
    );
    for (const sink of sinks) {
      await sink.exit;
      assert.equal(sink.position, 900_000, `seed ${seed}`);
      assert.equal(sink.exits.length, 1, `seed ${seed}`);
    }
    for (const stream of [1, 2, 3]) guest.forget(stream);
    await guest.ping();
    assert.equal(fake.processes.size, 0);
    guest.close();
  }
});

test("input arrives whole and once, wherever the link is cut", async () => {
  for (let seed = 1; seed <= 15; seed += 1) {
    const random = new Random(seed);
    await using fake = await new FakeGuest().listen();
    let cuts = random.int(1, 6);
    const guest = await openGuest(async () => {
      const socket = await fake.connect();
      cuts -= 1;
      return cuts < 0 ? socket : cutAfter(socket, random.int(1, 60_000));
    }, patient);
    const parts: Buffer[] = [];
    let stored = 0;
    const exit = new Promise<void>((resolve) => {
      const sink = {
        get position() {
          return stored;
        },
        async write(_tag: number, bytes: Uint8Array) {
          parts.push(Buffer.from(bytes));
          stored += bytes.length;
        },
        exited: () => resolve(),
      };
      void guest.start({ stream: guest.nextStream(), argv: ["cat"], stdin: true }, sink);
    });
    const input = Array.from({ length: 20 }, () => random.bytes(random.int(0, 10_000)));
    await Promise.all(input.map((bytes) => guest.writeStdin(1, bytes)));
    guest.endStdin(1);
    await exit;
    assert.ok(Buffer.concat(parts).equals(Buffer.concat(input)), `seed ${seed}`);
    guest.close();
  }
});

test("a new daemon goes on where the old one had stored", async () => {
  await using fake = await new FakeGuest().listen();
  const old = await openGuest(fake.connect);
  await old.seal({});
  let enough!: () => void;
  const reached = new Promise<void>((resolve) => {
    enough = resolve;
  });
  const first: PatternSink = new PatternSink({
    run: 100,
    delay: () => {
      if (first.position > 1_000_000) enough();
      return sleep(1);
    },
  });
  await old.start({ stream: old.nextStream(), argv: ["pattern", "20000000", "100", "1000"] }, first);
  await old.start({ stream: old.nextStream(), argv: ["hang"] }, new PatternSink({ run: 1 }));
  await reached;
  old.close();
  // What is being written when a daemon dies may or may not be in the file; here it is.
  await sleep(20);
  const position = first.position;

  const second = new PatternSink({ run: 100, from: position });
  const guest = await openGuest(fake.connect, { sinks: [[1, second]] });
  assert.ok(guest.hello.sealed);
  assert.deepEqual(
    guest.hello.processes.map(({ stream, pid }) => [stream, pid]),
    [
      [1, 101],
      [2, 102],
    ],
  );
  await second.exit;
  assert.equal(second.position, 20_000_000);
  assert.equal(guest.nextStream(), 3);

  const late = new PatternSink({ run: 1 });
  guest.resume(2, late);
  await guest.signal(2, 15, true);
  assert.equal((await late.exit).signal, 15);
  assert.throws(() => guest.resume(2, late), { code: "PROCESS_NOT_FOUND" });
  guest.close();
});

test("processes are claimed at any moment, also while the link is being opened again", async () => {
  for (let ticks = 0; ticks < 12; ticks += 1) {
    await using fake = await new FakeGuest().listen();
    const old = await openGuest(fake.connect);
    const program = ["pattern", "100000", "10"];
    await old.start({ stream: old.nextStream(), argv: program }, new PatternSink({ run: 10 }));
    await old.start({ stream: old.nextStream(), argv: program }, new PatternSink({ run: 10 }));
    old.close();
    // The output of both is acknowledged in part; that part is in the old daemon's files.
    const stored = (stream: number) => fake.processes.get(stream)!.acked;
    const guest = await openGuest(fake.connect);
    const first = new PatternSink({ run: 10, from: stored(1) });
    const second = new PatternSink({ run: 10, from: stored(2) });
    guest.resume(1, first);
    for (let i = 0; i < ticks; i += 1) await new Promise((resolve) => setImmediate(resolve));
    guest.resume(2, second);
    await Promise.all([first.exit, second.exit]);
    assert.deepEqual([first.position, second.position], [100_000, 100_000]);
    guest.close();
  }
});

test("a process that a new daemon does not claim holds nothing up", async () => {
  await using fake = await new FakeGuest().listen();
  const old = await openGuest(fake.connect);
  await old.start(
    { stream: old.nextStream(), argv: ["pattern", "9000000", "9"] },
    { position: 0, write: () => new Promise(() => {}), exited() {} },
  );
  old.close();
  const guest = await openGuest(fake.connect);
  const sink = new PatternSink({ run: 1000 });
  await guest.start({ stream: guest.nextStream(), argv: ["pattern", "5000000", "1000"] }, sink);
  await sink.exit;
  guest.forget(1);
  await guest.ping();
  assert.deepEqual([...fake.processes.keys()], [2]);
  guest.close();
});

test("when the sink fails, the same bytes come again after a pause", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect, { sinkRetryDelaysMs: [1, 1] });
  const inner = new PatternSink({ run: 50 });
  let broken = 3;
  let failing = false;
  const sink = {
    get position() {
      return inner.position;
    },
    async write(tag: 1 | 2, bytes: Uint8Array) {
      if (inner.position > 100_000 && broken > 0 && !failing) {
        failing = true;
        broken -= 1;
        setTimeout(() => {
          failing = false;
        }, 5);
      }
      if (failing) throw new Error("disk full");
      await inner.write(tag, bytes);
    },
    exited: inner.exited.bind(inner),
  };
  await guest.start({ stream: guest.nextStream(), argv: ["pattern", "3000000", "50", "4000"] }, sink);
  await inner.exit;
  assert.equal(inner.position, 3_000_000);
  assert.equal(broken, 0);
  guest.close();
});
