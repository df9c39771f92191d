import assert from "node:assert/strict";
import { test } from "node:test";
import { rules } from "@caisson/contract";
import { Connect_Kind } from "@caisson/contract/link";
import { connectionWindowBytes, encodeFrame, firstGuestStream, frameType } from "./frame/frame.ts";
import { decodeControl } from "./messages.ts";
import { openGuest } from "./open.ts";
import { FakeConnection } from "./testing/fake-connection.ts";
import { FakeGuest } from "./testing/fake-guest.ts";
import { Random } from "./testing/random.ts";
import { LinkViolation } from "./violation.ts";

const empty = new Uint8Array(0);
const first = firstGuestStream;

function connect(connection: FakeConnection, stream: number, more: object = {}): void {
  const value = { stream, kind: Connect_Kind.TRANSPARENT, name: "example.com", port: 443, ...more };
  connection.control(0, { case: "connect", value });
}

/** A sealed guest that tells the lie; resolves with the rule that was broken. */
async function ruleBrokenBy(lie: (connection: FakeConnection) => void): Promise<string> {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  await guest.seal({});
  guest.onConnection(() => {});
  lie(fake.connection!);
  const error = await guest.lost;
  assert.ok(error instanceof LinkViolation, String(error));
  return error.rule;
}

const lies: Record<string, [rule: RegExp, lie: (connection: FakeConnection) => void]> = {
  "a stream of the daemon's": [/out of range/, (c) => connect(c, 5)],
  "stream zero": [/out of range/, (c) => connect(c, 0)],
  "a number twice": [/used before/, (c) => [connect(c, first), connect(c, first)]],
  "a number again after a reset": [
    /used before/,
    (c) => {
      connect(c, first + 3);
      c.frame(frameType.reset, first + 3, empty);
      connect(c, first + 2);
    },
  ],
  "a frame on a connection that was never opened": [
    /never opened/,
    (c) => c.data(first, 0, Uint8Array.of(1)),
  ],
  "no kind": [/unknown kind/, (c) => connect(c, first, { kind: 0 })],
  "a kind of another version": [/unknown kind/, (c) => connect(c, first, { kind: 9 as never })],
  "no name": [/name/, (c) => connect(c, first, { name: "" })],
  "a name without end": [/name/, (c) => connect(c, first, { name: "a".repeat(254) })],
  "a name with a line break": [/name/, (c) => connect(c, first, { name: "a\r\nb" })],
  "a name with a zero byte": [/name/, (c) => connect(c, first, { name: "a\0b" })],
  "a name in capitals": [/name/, (c) => connect(c, first, { name: "Example.com" })],
  "port zero": [/port/, (c) => connect(c, first, { port: 0 })],
  "a port beyond all": [/port/, (c) => connect(c, first, { port: 65_536 })],
  "a proxy connection that names a target": [/proxy/, (c) => connect(c, first, { kind: Connect_Kind.PROXY })],
  "more than a window at once": [
    /beyond the window/,
    (c) => {
      connect(c, first);
      c.data(first, 0, new Uint8Array(connectionWindowBytes));
      c.data(first, 0, Uint8Array.of(1));
    },
  ],
  "a tag": [/tag/, (c) => [connect(c, first), c.data(first, 1, Uint8Array.of(1))]],
  "bytes after the end": [
    /after END/,
    (c) => {
      connect(c, first);
      c.frame(frameType.end, first, empty);
      c.data(first, 0, Uint8Array.of(1));
    },
  ],
  "two ends": [
    /two ENDs/,
    (c) => {
      connect(c, first);
      c.frame(frameType.end, first, empty);
      c.frame(frameType.end, first, empty);
    },
  ],
  "an acknowledgement of what was never sent": [/ACK/, (c) => [connect(c, first), c.ack(first, 1)]],
  "more connections than there may be": [
    /too many connections/,
    (c) => {
      for (let i = 0; i <= rules.link.connections; i += 1) connect(c, first + i);
    },
  ],
};

for (const [what, [rule, lie]] of Object.entries(lies)) {
  test(`${what} ends the guest`, async () => {
    assert.match(await ruleBrokenBy(lie), rule);
  });
}

test("a connection before the wall is closed ends the guest", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  guest.onConnection(() => assert.fail("nothing may arrive"));
  connect(fake.connection!, first);
  assert.match(String(await guest.lost), /before the wall/);
});

test("a flood of connections that are refused is only work: the guest goes on to be served", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  await guest.seal({});
  guest.onConnection(({ stream }) => stream.destroy());
  for (let i = 0; i < 10_000; i += 1) {
    connect(fake.connection!, first + i);
    fake.connection!.data(first + i, 0, new Uint8Array(100));
  }
  await guest.ping();
  guest.close();
});

test("mutated messages about connections give a message within bounds or a violation, nothing else", () => {
  const frames: Buffer[] = [];
  const recorder = { raw: (bytes: Uint8Array) => frames.push(Buffer.from(bytes.subarray(12))) };
  const random = new Random(7);
  let violations = 0;
  for (let i = 0; i < 3000; i += 1) {
    frames.length = 0;
    // The encoder of the fake, without a socket.
    const fake = {
      control: FakeConnection.prototype.control,
      frame: (type: number, stream: number, payload: Uint8Array) =>
        recorder.raw(encodeFrame(type, stream, payload)),
    } as never as FakeConnection;
    if (random.int(0, 1) === 0) connect(fake, first + i);
    else {
      const ports = Array.from({ length: random.int(0, 5) }, () => ({
        port: random.int(1, 65_535),
        address: "::1",
        command: "node",
      }));
      fake.control(0, { case: "ports", value: { ports } });
    }
    const bytes = frames[0]!;
    for (let n = random.int(1, 4); n > 0 && bytes.length > 0; n -= 1) {
      bytes[random.int(0, bytes.length - 1)] = random.int(0, 255);
    }
    try {
      const { message } = decodeControl(bytes);
      if (message.case === "connect") {
        assert.ok(message.value.stream >= first && message.value.port <= 65_535);
        assert.match(message.value.name, /^[a-z0-9_.-]*$/);
      }
    } catch (error) {
      assert.ok(error instanceof LinkViolation, String(error));
      violations += 1;
    }
  }
  assert.ok(violations > 200);
});
