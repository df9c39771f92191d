import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { GuestControlSchema, type HostControl } from "@caisson/contract/link";
import { encodeHeader, frameType, windowBytes } from "./frame/frame.ts";
import type { Guest, OutputSink } from "./guest.ts";
import { openGuest } from "./open.ts";
import type { FakeConnection } from "./testing/fake-connection.ts";
import { FakeGuest } from "./testing/fake-guest.ts";
import { PatternSink } from "./testing/pattern-sink.ts";
import { LinkViolation } from "./violation.ts";

type Lie = (connection: FakeConnection, id: number, stream: number) => void;

const stuckSink: OutputSink = { position: 0, write: () => new Promise(() => {}), exited() {} };
const empty = new Uint8Array(0);

/** Starts a process whose guest then tells the lie; resolves with the rule that was broken. */
async function ruleBrokenBy(lie: Lie, sink: OutputSink = new PatternSink({ run: 1e9 })): Promise<string> {
  await using fake = await new FakeGuest({
    onControl: (connection, { id, message }: HostControl) => {
      if (message.case !== "start") return false;
      connection.control(id, { case: "started", value: { pid: 1 } });
      lie(connection, id, message.value.stream);
      return true;
    },
  }).listen();
  const guest = await openGuest(fake.connect);
  await guest.start({ stream: guest.nextStream(), argv: ["x"] }, sink).catch(() => {});
  const error = await guest.lost;
  assert.ok(error instanceof LinkViolation, String(error));
  await assert.rejects(guest.ping(), { code: "GUEST_LOST" });
  return error.rule;
}

const exited = (stream: number, position: number, more: object = {}) => ({
  case: "exited" as const,
  value: { stream, position: BigInt(position), ...more },
});

const lies: Record<string, [rule: RegExp, lie: Lie]> = {
  "output on a stream that was never opened": [/never opened/, (c) => c.data(77, 1, Uint8Array.of(1))],
  "output without a tag": [/without a tag/, (c, _id, stream) => c.data(stream, 0, Uint8Array.of(1))],
  "an acknowledgement of what was never sent": [/ACK/, (c, _id, stream) => c.ack(stream, 1)],
  "an acknowledgement beyond all numbers": [
    /ACK/,
    (c, _id, stream) => c.frame(frameType.ack, stream, new Uint8Array(8).fill(255)),
  ],
  "an answer that nobody asked for": [/asked for/, (c) => c.control(999, { case: "done", value: {} })],
  "an answer twice": [/asked for/, (c, id) => c.control(id, { case: "started", value: { pid: 2 } })],
  "a message that nobody asked for": [/asked for/, (c) => c.control(0, { case: "pong", value: {} })],
  "a message that is none": [/decoded/, (c) => c.frame(frameType.control, 0, new Uint8Array(9).fill(255))],
  "an empty message": [/asked for/, (c) => c.frame(frameType.control, 0, empty)],
  "a reset that is none": [
    /decoded/,
    (c, _id, s) => c.frame(frameType.reset, s, new Uint8Array(9).fill(255)),
  ],
  "an exit before its output": [/wrong position/, (c, _id, s) => c.control(0, exited(s, windowBytes + 1))],
  "an exit that takes output back": [
    /wrong position/,
    (c, _id, s) => {
      c.data(s, 1, Uint8Array.of(0, 31));
      c.control(0, exited(s, 1));
    },
  ],
  "output after the exit": [
    /after the end/,
    (c, _id, s) => {
      c.control(0, exited(s, 0));
      c.data(s, 1, Uint8Array.of(0));
    },
  ],
  "two exits of one process": [
    /two exits/,
    (c, _id, s) => {
      c.control(0, exited(s, 5));
      c.control(0, exited(s, 6));
    },
  ],
  "an exit of a process that nobody started": [/nobody started/, (c) => c.control(0, exited(77, 0))],
  "an exit on stream zero": [/stream number/, (c) => c.control(0, exited(0, 0))],
  "an exit code that no process has": [
    /no process has/,
    (c, _id, s) => c.control(0, exited(s, 0, { code: 256 })),
  ],
  "an exit with a code and a signal": [
    /no process has/,
    (c, _id, s) => c.control(0, exited(s, 0, { code: 1, signal: 9 })),
  ],
  "a position beyond all numbers": [
    /out of range/,
    (c, _id, s) => c.control(0, { case: "exited", value: { stream: s, position: 2n ** 63n } }),
  ],
  "a frame of a length that is not allowed": [
    /too long/,
    (c, _id, s) => c.raw(encodeHeader(frameType.data, s, 1, 0xffff_ffff)),
  ],
};

for (const [what, [rule, lie]] of Object.entries(lies)) {
  test(`${what} ends the guest`, async () => {
    assert.match(await ruleBrokenBy(lie), rule);
  });
}

test("output beyond the window ends the guest, whether the sink is stuck or the acknowledgements are not read", async () => {
  const flood: Lie = (connection, _id, stream) => {
    for (let i = 0; i < 4; i += 1) connection.data(stream, 1, new Uint8Array(windowBytes / 2));
  };
  assert.match(await ruleBrokenBy(flood, stuckSink), /beyond the window/);
});

test("an answer of the wrong kind ends the guest and rejects the call", async () => {
  await using fake = await new FakeGuest({
    onControl: (connection, { id, message }) => {
      if (message.case !== "usage") return false;
      connection.control(id, { case: "done", value: {} });
      return true;
    },
  }).listen();
  const guest = await openGuest(fake.connect);
  await assert.rejects(guest.usage(), LinkViolation);
  assert.ok((await guest.lost) instanceof LinkViolation);
});

/** Opens a guest with a process, lets `change` corrupt its state, cuts the link; resolves with what broke. */
async function ruleBrokenAfterCut(change: (fake: FakeGuest, guest: Guest) => void): Promise<string> {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  await guest.seal({});
  await guest.start({ stream: guest.nextStream(), argv: ["hang"] }, new PatternSink({ run: 1 }));
  change(fake, guest);
  fake.cut();
  const error = await guest.lost;
  assert.ok(error instanceof LinkViolation, String(error));
  return error.rule;
}

test("a guest that comes back as another one is not taken for the same", async () => {
  const broken = {
    "not the guest of before": (fake: FakeGuest) => {
      fake.sealed = false;
    },
    "was forgotten": (fake: FakeGuest) => fake.processes.clear(),
    "nobody started": (fake: FakeGuest) => fake.processes.set(55, fake.processes.get(1)!.renamed(55)),
    "not stored is gone": (fake: FakeGuest) => fake.processes.get(1)!.ack(10),
    "beyond what was sent": (fake: FakeGuest) => {
      fake.processes.get(1)!.stdinTaken = 3;
    },
  };
  for (const [rule, change] of Object.entries(broken)) {
    assert.match(await ruleBrokenAfterCut(change), new RegExp(rule));
  }
});

test("what a guest calls an error is bounded, harmless, and never speaks for the daemon", async () => {
  const failures = [
    { code: "NO_SUCH_CODE", message: "\u001b]52;c;x\u0007 \u202e evil", expected: "INTERNAL" },
    { code: "UNAUTHENTICATED", message: "log in at my place", expected: "INTERNAL" },
    { code: "toString", message: "", expected: "INTERNAL" },
    { code: "PROCESS_ENDED", message: "x".repeat(100_000), expected: "PROCESS_ENDED" },
  ];
  await using fake = await new FakeGuest({
    onControl: (connection, { id, message }) => {
      if (message.case !== "signal") return false;
      const { code, message: words } = failures[message.value.signal]!;
      connection.fail(id, code, words);
      return true;
    },
  }).listen();
  const guest = await openGuest(fake.connect);
  for (const [signal, { expected }] of failures.entries()) {
    await assert.rejects(guest.signal(1, signal, false), (error: Error & { code: string }) => {
      assert.equal(error.code, expected);
      assert.ok(Buffer.byteLength(error.message) <= 512);
      assert.doesNotMatch(error.message, /[\p{Cc}\p{Cf}]/u);
      return true;
    });
  }
  guest.close();
});

test("a guest that stops reading is given up, and what waits for it stays bounded", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect, { heartbeatMs: 20 });
  await guest.start({ stream: guest.nextStream(), argv: ["hang"] }, new PatternSink({ run: 1 }));
  const connection = fake.connection!;
  connection.socket.pause();
  // It goes on talking, so that it is not silence that gives it away.
  const talk = setInterval(() => connection.data(1, 1, empty), 5);
  const writes = Array.from({ length: 20 }, () =>
    guest.writeStdin(1, new Uint8Array(1_000_000)).catch(() => {}),
  );
  const signals = setInterval(() => guest.signal(1, 1, false).catch(() => {}), 5);
  assert.match((await guest.lost).message, /does not read/);
  clearInterval(talk);
  clearInterval(signals);
  await Promise.all(writes);
});

test("calls to a guest that reads nothing do not pile up without end", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  fake.connection!.socket.pause();
  const env = ["X=".padEnd(100_000, "x")];
  for (let i = 0; i < 200; i += 1) {
    guest.start({ stream: guest.nextStream(), argv: ["hang"], env }, stuckSink).catch(() => {});
  }
  assert.match((await guest.lost).message, /does not read/);
});

test("hellos that are out of bounds are refused", async () => {
  const hello = (value: object) =>
    toBinary(
      GuestControlSchema,
      create(GuestControlSchema, {
        id: 1,
        message: { case: "hello", value: { version: 1, window: 1, build: "b", ...value } },
      }),
    );
  const hellos = {
    "a window of nothing": hello({ window: 0 }),
    "a build name without end": hello({ build: "b".repeat(1000) }),
    "two processes on one stream": hello({ processes: [{ stream: 4 }, { stream: 4 }] }),
    "a process on stream zero": hello({ processes: [{ stream: 0 }] }),
    "no stream number left": hello({ nextStream: 0xffff_ffff }),
    "an exit of another process": hello({ processes: [{ stream: 4, exited: { stream: 5 } }] }),
  };
  for (const [what, payload] of Object.entries(hellos)) {
    await using fake = await new FakeGuest({
      onControl: (connection) => {
        connection.frame(frameType.control, 0, payload);
        return true;
      },
    }).listen();
    await assert.rejects(openGuest(fake.connect), LinkViolation, what);
  }
});
