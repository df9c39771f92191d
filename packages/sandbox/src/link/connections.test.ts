import assert from "node:assert/strict";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { rules } from "@caisson/contract";
import { connectionWindowBytes, windowBytes } from "./frame/frame.ts";
import type { Guest, GuestConnection } from "./guest.ts";
import { openGuest } from "./open.ts";
import { guestWithSockets } from "./testing/fake-sockets.ts";
import { PatternSink } from "./testing/pattern-sink.ts";
import { Random } from "./testing/random.ts";

const never = new AbortController().signal;

async function opened() {
  const parts = guestWithSockets();
  await parts.fake.listen();
  const guest = await openGuest(parts.fake.connect, { reconnectDelaysMs: [0, 0, 0] });
  await guest.seal({});
  const arrived: GuestConnection[] = [];
  guest.onConnection((connection) => arrived.push(connection));
  const dispose = () => {
    guest.close();
    return parts.fake[Symbol.asyncDispose]();
  };
  return { ...parts, guest, arrived, [Symbol.asyncDispose]: dispose };
}

/** What was sent before this call has arrived when it resolves. */
async function settled(guest: Guest): Promise<void> {
  await guest.ping();
  await new Promise((resolve) => setImmediate(resolve));
}

async function text(stream: Duplex): Promise<string> {
  const parts: Buffer[] = [];
  for await (const piece of stream) parts.push(piece);
  return Buffer.concat(parts).toString();
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
}

test("connections arrive with where they go, carry bytes both ways, and each side ends by itself", async () => {
  await using link = await opened();
  const program = link.open({ name: "example.com", port: 443 });
  program.send(Buffer.from("hello"));
  const proxy = link.open();
  await settled(link.guest);
  const [first, second] = link.arrived;
  assert.deepEqual([first!.kind, first!.name, first!.port], ["transparent", "example.com", 443]);
  assert.deepEqual([second!.kind, second!.name, second!.port], ["proxy", "", 0]);
  first!.stream.end("over to you");
  await until(() => program.ended);
  assert.equal(program.text, "over to you");
  program.send(Buffer.from(", world"));
  program.end();
  assert.equal(await text(first!.stream), "hello, world");
  assert.equal(program.wasReset, false);
  second!.stream.destroy();
  await until(() => proxy.wasReset);
});

test("connections without a handler are reset, and so is one whose handler throws", async () => {
  await using link = await opened();
  link.guest.onConnection(() => {
    throw new Error("no");
  });
  const refused = link.open();
  await until(() => refused.wasReset);
  assert.equal(await link.guest.ping(), 0);
});

test("a port inside is dialled, and a closed one is an error of the table", async () => {
  await using link = await opened();
  await assert.rejects(link.guest.connect(80, never), { code: "PORT_CLOSED" });
  await assert.rejects(link.guest.connect(8080, AbortSignal.abort()), { code: "CANCELLED" });
  const stream = await link.guest.connect(8080, never);
  const [server] = link.sockets.values();
  stream.end("GET /");
  await until(() => server!.ended);
  server!.send(Buffer.from("200"));
  server!.end();
  assert.equal(await text(stream), "200");
  assert.deepEqual(
    (await link.guest.ports()).map(({ port }) => port),
    [8080],
  );
});

test("far more than a window passes both ways, whole and in order", async () => {
  await using link = await opened();
  const content = Buffer.from(new Random(3).bytes(3_000_000));
  const program = link.open({ name: "a", port: 1 });
  program.send(content);
  program.end();
  await settled(link.guest);
  const { stream } = link.arrived[0]!;
  const parts: Buffer[] = [];
  for await (const piece of stream) {
    parts.push(piece);
    if (!stream.write(piece)) await once(stream, "drain");
  }
  stream.end();
  await until(() => program.ended);
  assert.ok(Buffer.concat(parts).equals(content));
  assert.ok(Buffer.concat(program.received).equals(content));
});

test("neither side sends more than the other takes", async () => {
  await using link = await opened();
  const program = link.open({ name: "a", port: 1 });
  program.takes = false;
  program.send(new Uint8Array(4 * connectionWindowBytes));
  await settled(link.guest);
  const { stream } = link.arrived[0]!;
  await settled(link.guest);
  assert.equal(program.sent, connectionWindowBytes);
  for (let i = 0; i < 64; i += 1) stream.write(new Uint8Array(64 * 1024));
  await until(() => program.bytes >= windowBytes);
  await settled(link.guest);
  assert.equal(program.bytes, windowBytes);
  assert.ok(stream.writableNeedDrain);
  program.takes = true;
  program.take();
  await once(stream, "drain");
  stream.resume();
  await until(() => program.sent === 4 * connectionWindowBytes);
});

test("connections whose readers stand still stall no other stream", async () => {
  await using link = await opened();
  for (let i = 0; i < 100; i += 1) {
    link.open({ name: "a", port: 1 }).send(new Uint8Array(2 * connectionWindowBytes));
  }
  const lively = link.open({ name: "b", port: 2 });
  const sink = new PatternSink({ run: 100 });
  await link.guest.start({ stream: link.guest.nextStream(), argv: ["pattern", "3000000", "100"] }, sink);
  await sink.exit;
  await settled(link.guest);
  lively.send(Buffer.from("x".repeat(500_000)));
  lively.end();
  assert.equal((await text(link.arrived.find(({ name }) => name === "b")!.stream)).length, 500_000);
});

test("what waits on all connections together is bounded: beyond it the one that wants more is reset", async () => {
  await using link = await opened();
  const fitting = rules.link.connections_queued_bytes / connectionWindowBytes;
  const programs = Array.from({ length: fitting + 20 }, () => {
    const program = link.open({ name: "a", port: 1 });
    program.send(new Uint8Array(connectionWindowBytes));
    return program;
  });
  await settled(link.guest);
  await until(() => programs.filter(({ wasReset }) => wasReset).length >= 20);
  assert.equal(programs.filter(({ wasReset }) => !wasReset).length, fitting);
  for (const { stream } of link.arrived) stream.resume();
  await settled(link.guest);
  const next = link.open({ name: "a", port: 1 });
  next.send(Buffer.from("room again"));
  next.end();
  await settled(link.guest);
  assert.equal(await text(link.arrived.at(-1)!.stream), "room again");
});

test("a closed connection makes room for another at once", async () => {
  await using link = await opened();
  link.guest.onConnection(({ stream }) => {
    stream.resume();
    stream.end();
  });
  const programs = Array.from({ length: rules.link.connections }, () => link.open());
  await until(() => programs.every(({ ended }) => ended));
  for (const program of programs) {
    program.end();
    link.open();
  }
  assert.equal(await link.guest.ping(), 0);
});

test("a cut resets every connection, and the next link has new ones", async () => {
  await using link = await opened();
  link.open({ name: "a", port: 1 });
  const dialled = await link.guest.connect(8080, never);
  await settled(link.guest);
  const errors = [link.arrived[0]!.stream, dialled].map((stream) => once(stream, "error"));
  link.fake.cut();
  for (const error of errors) assert.equal((await error)[0].code, "UNAVAILABLE");
  await link.guest.ping();
  link.open({ name: "b", port: 1 });
  await settled(link.guest);
  assert.equal(link.arrived[1]!.name, "b");
  await link.guest.connect(8081, never);
});

test("a connection that is reset inside fails for its reader, and nobody who listens for nothing is hurt", async () => {
  await using link = await opened();
  const program = link.open({ name: "a", port: 1 });
  const silent = link.open({ name: "a", port: 1 });
  await settled(link.guest);
  const read = text(link.arrived[0]!.stream);
  program.reset();
  silent.reset();
  await assert.rejects(read, { code: "UNAVAILABLE" });
  assert.equal(program.wasReset, false);
  await link.guest.ping();
});
