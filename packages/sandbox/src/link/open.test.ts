import assert from "node:assert/strict";
import { test } from "node:test";
import { LinkCut } from "./failure.ts";
import { openGuest } from "./open.ts";
import { FakeGuest } from "./testing/fake-guest.ts";
import { PatternSink } from "./testing/pattern-sink.ts";

test("seal and start go out together, and the exit comes after the output", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  const sink = new PatternSink({ run: 1000 });
  const sealed = guest.seal({ hostname: "box" });
  const started = guest.start({ stream: guest.nextStream(), argv: ["pattern", "5000000", "1000"] }, sink);
  assert.equal((await sealed).holds[0]?.name, "seccomp");
  assert.deepEqual(await started, { pid: 101 });
  assert.equal((await sink.exit).code, 0);
  assert.equal(sink.position, 5_000_000);
  assert.deepEqual(
    fake.controls.map(({ message }) => message.case),
    ["hello", "seal", "start"],
  );
  guest.close();
});

test("a command that is not there is an error of the table, and a non-zero exit is a value", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  const start = (argv: string[]) => {
    const sink = new PatternSink({ run: 1 });
    return { sink, started: guest.start({ stream: guest.nextStream(), argv }, sink) };
  };
  await assert.rejects(start(["nothing-there"]).started, { code: "COMMAND_NOT_FOUND" });
  const { sink, started } = start(["exit", "7"]);
  await started;
  assert.equal((await sink.exit).code, 7);
  await assert.rejects(guest.writeStdin(2, Uint8Array.of(1)), { code: "PROCESS_ENDED" });
  guest.forget(2);
  await assert.rejects(guest.writeStdin(2, Uint8Array.of(1)), { code: "PROCESS_NOT_FOUND" });
  guest.close();
});

test("a stream number is never used twice", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  const sink = new PatternSink({ run: 1 });
  await guest.start({ stream: guest.nextStream(), argv: ["hang"] }, sink);
  await assert.rejects(guest.start({ stream: 1, argv: ["hang"] }, sink), { code: "INTERNAL" });
  await assert.rejects(guest.start({ stream: 9, argv: ["hang"] }, sink), { code: "INTERNAL" });
  await assert.rejects(guest.start({ argv: ["hang"] }, sink), { code: "INTERNAL" });
  guest.close();
});

test("a guest of another version or build is named as such", async () => {
  await using other = await new FakeGuest({ version: 99 }).listen();
  await assert.rejects(openGuest(other.connect), { code: "VERSION_MISMATCH", message: /version 99/ });
  await using fake = await new FakeGuest({ build: "b1" }).listen();
  await assert.rejects(openGuest(fake.connect, { build: "b2" }), {
    code: "VERSION_MISMATCH",
    message: /b1.*b2/,
  });
  (await openGuest(fake.connect, { build: "b1" })).close();
  await using refusing = await new FakeGuest({
    onControl: (connection, { id }) => {
      connection.fail(id, "VERSION_MISMATCH", "I speak version 0");
      return true;
    },
  }).listen();
  await assert.rejects(openGuest(refusing.connect), { code: "VERSION_MISMATCH" });
});

test("opening gives up when nobody is there or nobody answers", async () => {
  await using gone = new FakeGuest();
  await assert.rejects(openGuest(gone.connect, { reconnectDelaysMs: [0, 1] }), { code: "GUEST_LOST" });
  await using mute = await new FakeGuest({ onControl: () => true }).listen();
  await assert.rejects(openGuest(mute.connect, { helloTimeoutMs: 30 }), { code: "GUEST_LOST" });
});

test("a call that was under way when the link was cut is rejected, a later one waits for the next link", async () => {
  let answer = false;
  await using fake = await new FakeGuest({
    onControl: (_connection, { message }) => message.case === "usage" && !answer,
  }).listen();
  const guest = await openGuest(fake.connect);
  const usage = guest.usage();
  await guest.ping();
  fake.cut();
  await assert.rejects(usage, (error) => error instanceof LinkCut && error.code === "UNAVAILABLE");
  answer = true;
  await guest.usage();
  assert.equal(fake.connections, 2);
  guest.close();
});

test("a command whose start was cut off runs once", async () => {
  for (const heard of [true, false]) {
    let starts = 0;
    await using fake = await new FakeGuest({
      onControl: (connection, { message }) => {
        if (message.case !== "start") return false;
        starts += 1;
        if (starts > 1) return false;
        if (heard) queueMicrotask(() => connection.socket.destroy());
        else connection.socket.destroy();
        return !heard;
      },
    }).listen();
    const guest = await openGuest(fake.connect);
    const sink = new PatternSink({ run: 10 });
    const { pid } = await guest.start({ stream: guest.nextStream(), argv: ["pattern", "1000", "10"] }, sink);
    assert.equal(pid, 101);
    await sink.exit;
    assert.equal(starts, heard ? 1 : 2);
    guest.close();
  }
});

test("the guest is lost when it does not answer pings", async () => {
  let mute = false;
  await using fake = await new FakeGuest({ onControl: () => mute }).listen();
  const guest = await openGuest(fake.connect, { heartbeatMs: 10 });
  // Answers keep it alive for longer than it may be silent.
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(await guest.ping(), 0);
  mute = true;
  const error = await guest.lost;
  assert.match(error.message, /does not answer/);
  await assert.rejects(guest.ping(), { code: "GUEST_LOST" });
});

test("the guest is lost when the link cannot be opened again", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect, { reconnectDelaysMs: [0, 1, 1] });
  const waiting = guest.start({ stream: guest.nextStream(), argv: ["hang"] }, new PatternSink({ run: 1 }));
  await waiting;
  const stdin = guest.writeStdin(1, new Uint8Array(2_000_000)).catch((error) => error);
  await fake.stop();
  assert.match((await guest.lost).message, /could not be opened again/);
  const failed = await Promise.race([stdin, guest.usage().catch((error) => error)]);
  assert.ok(failed === undefined || failed.code === "GUEST_LOST" || failed.code === "UNAVAILABLE");
});

test("the guest is lost at once when its sandbox has ended", async () => {
  await using fake = await new FakeGuest().listen();
  let end!: (reason: string) => void;
  const ended = new Promise<string>((resolve) => {
    end = resolve;
  });
  const guest = await openGuest(fake.connect, { ended });
  await fake.stop();
  end("exit code 71");
  assert.match((await guest.lost).message, /exit code 71/);
});

test("after closing, everything is refused and nothing is opened again", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  const usage = guest.usage();
  guest.close();
  await assert.rejects(usage, { code: "UNAVAILABLE" });
  await assert.rejects(guest.ping(), { code: "UNAVAILABLE" });
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(fake.connections, 1);
});

test("a shutdown ends the link as wished", async () => {
  await using fake = await new FakeGuest({
    onControl: (connection, { message }) => {
      if (message.case !== "shutdown") return false;
      connection.socket.destroy();
      return true;
    },
  }).listen();
  const guest = await openGuest(fake.connect);
  await guest.shutdown();
  await assert.rejects(guest.ping(), { code: "UNAVAILABLE" });
  assert.equal(fake.connections, 1);
});
