import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, statSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CaissonError,
  FileService,
  ProcessService,
  rules,
  SandboxService,
  SystemService,
  serve,
} from "@caisson/contract";
import { decodeStatus } from "@caisson/contract/status";
import {
  decodeResponse,
  encodeFrame,
  encodeHeader,
  encodeRequest,
  FrameDecoder,
  flag,
  messageType,
  requestPrefix,
} from "@caisson/contract/ttrpc";
import { lasting } from "./fakes.ts";
import { sandbox } from "./samples.ts";
import { startServer } from "./server.ts";
import { TestClient } from "./ttrpc-client.ts";

const health = requestPrefix("caisson.v1.SystemService", "GetHealth");
const none = Buffer.alloc(0);
const codeIs = (code: string) => (error: unknown) => error instanceof CaissonError && error.code === code;

/** Sends raw bytes and gathers the answers' codes (`OK` for none) by stream, until `count` have come or the end. */
async function answersTo(path: string, bytes: Buffer, count: number): Promise<Map<number, string>> {
  const answers = new Map<number, string>();
  const socket = connect(path);
  const decoder = new FrameDecoder({
    frame: (stream, _type, _flags, payload) => {
      const { status } = decodeResponse(payload);
      answers.set(stream, status === undefined ? "OK" : decodeStatus(status).code);
      if (answers.size >= count) socket.destroy();
    },
    oversize: () => assert.fail("the server sent too much"),
  });
  socket.on("data", (chunk: Buffer) => decoder.push(chunk));
  socket.on("error", () => {});
  socket.write(bytes);
  await new Promise((resolve) => socket.on("close", resolve));
  return answers;
}

async function until(condition: () => boolean): Promise<void> {
  for (let waited = 0; !condition(); waited += 5) {
    assert.ok(waited < 10_000, "it never happened");
    await sleep(5);
  }
}

test("the socket is its owner's alone", async () => {
  await using server = await startServer();
  assert.equal(statSync(server.socket).mode & 0o777, 0o600);
});

test("another user cannot connect, even where the directory lets them", {
  skip: process.getuid?.() === 0 ? false : "only root can try it as somebody else",
}, async () => {
  await using server = await startServer();
  chmodSync(dirname(server.socket), 0o755);
  const script =
    "socket(S,PF_UNIX,SOCK_STREAM,0); connect(S,sockaddr_un($ARGV[0])) ? print 'open' : print $!{EACCES} ? 'EACCES' : $!";
  const as = (uid: number) =>
    execFileSync("/usr/bin/perl", ["-MSocket", "-MErrno", "-e", script, server.socket], {
      uid,
      gid: uid,
      encoding: "utf8",
    });
  assert.equal(as(0), "open");
  assert.equal(as(65_534), "EACCES");
});

test("a message that is too long is refused before it is held, and the connection goes on", async () => {
  await using server = await startServer();
  const length = rules.sizes.message_bytes + 1;
  const bytes = Buffer.concat([
    encodeHeader(1, messageType.request, 0, length),
    Buffer.alloc(length),
    encodeRequest(3, 0, health, none),
  ]);
  const answers = await answersTo(server.socket, bytes, 2);
  assert.deepEqual(
    [...answers],
    [
      [1, "TOO_LARGE"],
      [3, "OK"],
    ],
  );
});

test("what makes no sense is refused by name", async () => {
  await using server = await startServer();
  const bytes = Buffer.concat([
    encodeFrame(1, messageType.request, 0, Buffer.from([0xff, 0xff])),
    encodeRequest(3, 0, requestPrefix("caisson.v1.SystemService", "Nope"), none),
    encodeRequest(5, 0, requestPrefix("caisson.v1.Nope", "GetHealth"), none),
    encodeRequest(2, 0, health, none),
    encodeRequest(7, 0, requestPrefix("caisson.v1.SandboxService", "GetSandbox"), Buffer.from([0x0a, 0xff])),
    encodeRequest(
      9,
      0,
      requestPrefix("caisson.v1.SandboxService", "GetSandbox"),
      Buffer.from([0x0a, 1, 0xff]),
    ),
    encodeRequest(11, 0, health, none),
  ]);
  const answers = await answersTo(server.socket, bytes, 7);
  assert.deepEqual(
    [...answers].sort(([a], [b]) => a - b),
    [
      [1, "INVALID_INPUT"],
      [2, "INVALID_INPUT"],
      [3, "METHOD_UNKNOWN"],
      [5, "METHOD_UNKNOWN"],
      [7, "INVALID_INPUT"],
      [9, "INVALID_INPUT"],
      [11, "OK"],
    ],
  );
});

test("a client that answers, or sends a type that does not exist, is cut off", async () => {
  await using server = await startServer();
  for (const type of [messageType.response, 0, 9]) {
    assert.equal((await answersTo(server.socket, encodeFrame(1, type, 0, none), 1)).size, 0);
  }
});

test("whatever bytes come after a zero, the server goes on serving", async () => {
  await using server = await startServer();
  let state = 3;
  for (let round = 0; round < 60; round++) {
    const bytes = Buffer.alloc(200);
    for (let at = 1; at < bytes.length; at++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      bytes[at] = state >>> 24;
    }
    bytes.writeUInt16BE(0, 2);
    const socket = connect(server.socket);
    socket.on("error", () => {});
    socket.end(bytes);
    socket.resume();
    await new Promise((resolve) => socket.on("close", resolve));
  }
  const client = new TestClient(server.socket);
  assert.equal((await client.unary(SystemService.method.getHealth, {})).ready, true);
  client.close();
});

test("a caller that disappears, or says that it has gone, aborts its calls", async () => {
  await using server = await startServer();
  const wait = { sandboxId: sandbox.id, processId: lasting };
  const client = new TestClient(server.socket);
  void client.unary(ProcessService.method.waitProcess, wait).catch(() => {});
  await sleep(50);
  client.close();
  await until(() => server.watched.aborted === 1);

  const other = new TestClient(server.socket);
  const cancelled = other.unary(ProcessService.method.waitProcess, wait);
  other.socket.write(encodeFrame(1, messageType.data, flag.remoteClosed | flag.noData, none));
  await assert.rejects(cancelled, codeIs("CANCELLED"));
  await until(() => server.watched.aborted === 2);
  other.close();
});

test("a deadline ends the call, and one that has passed never begins it", async () => {
  await using server = await startServer();
  const client = new TestClient(server.socket);
  const wait = { sandboxId: sandbox.id, processId: lasting };
  await assert.rejects(
    client.unary(ProcessService.method.waitProcess, wait, { timeoutMs: 30 }),
    codeIs("DEADLINE_EXCEEDED"),
  );
  assert.equal(server.watched.aborted, 1);
  client.close();
  const passed = Buffer.concat([
    health,
    Buffer.from([4 << 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
  ]);
  const answers = await answersTo(server.socket, encodeFrame(1, messageType.request, 0, passed), 1);
  assert.equal(answers.get(1), "DEADLINE_EXCEEDED");
});

test("an error inside stays inside: neither its words nor its stack are sent, and it is logged", async () => {
  await using server = await startServer();
  const client = new TestClient(server.socket);
  const exec = client.call(ProcessService.method.exec, [
    { sandboxId: sandbox.id, command: { argv: ["crash"] } },
  ]);
  await assert.rejects(exec.next(), (error: CaissonError) => {
    assert.equal(error.code, "INTERNAL");
    assert.doesNotMatch(JSON.stringify([error.message, error.metadata]), /secret|\.ts|home/);
    assert.equal(server.logged[0]?.fields?.request_id, error.metadata.request_id);
    return true;
  });
  assert.match(String(server.logged[0]?.fields?.error), /secret\/path/);
  client.close();
});

test("a small result is one message, and its frames leave in one piece", async () => {
  await using server = await startServer();
  const client = new TestClient(server.socket);
  let chunks = 0;
  client.socket.on("data", () => chunks++);
  const request = { sandboxId: sandbox.id, command: { argv: ["true"] } };
  const answers = await Array.fromAsync(client.call(ProcessService.method.exec, [request]));
  assert.equal(answers.length, 1);
  assert.equal(answers[0]?.exit?.code, 3);
  assert.equal(chunks, 1);
  client.close();
});

test("a reader that does not read stops the writer, not the daemon", async () => {
  let made = 0;
  let returned = false;
  const chunk = Buffer.alloc(256 * 1024);
  const flood = serve(
    FileService,
    new Proxy({} as never, {
      get: () =>
        async function* () {
          try {
            while (made < 10_000) {
              made++;
              yield { data: chunk };
            }
          } finally {
            returned = true;
          }
        },
    }),
  );
  await using server = await startServer({ wrap: () => [flood] });
  const client = new TestClient(server.socket);
  client.socket.pause();
  void client.call(FileService.method.downloadArchive, [{}]).next();
  await sleep(300);
  assert.ok(made > 0 && made < 50, `${made} messages were made for nobody`);
  client.socket.destroy();
  await until(() => returned);
});

test("an upload that nobody takes stops the sender", async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let bytes = 0;
  const slow = serve(
    FileService,
    new Proxy({} as never, {
      get: () => async (requests: AsyncIterable<{ data: Uint8Array }>) => {
        await released;
        for await (const { data } of requests) bytes += data.length;
        return {};
      },
    }),
  );
  await using server = await startServer({ wrap: () => [slow] });
  const client = new TestClient(server.socket);
  const data = new Uint8Array(1024 * 1024);
  const answer = client.unary(FileService.method.uploadArchive, {}).catch(() => {});
  client.close();
  await answer;
  const other = new TestClient(server.socket);
  const messages = Array.from({ length: 64 }, () => ({ data }));
  const done = other.call(FileService.method.uploadArchive, messages).next();
  await sleep(200);
  assert.ok(
    other.socket.writableLength > 40 * data.length,
    "the kernel and the inbox hold a part, the sender the rest",
  );
  release();
  await done;
  assert.equal(bytes, 64 * data.length);
  other.close();
});

test("too many calls at once on a connection are refused", async () => {
  await using server = await startServer();
  const prefix = requestPrefix("caisson.v1.ProcessService", "WaitProcess");
  const wait = Buffer.concat([
    Buffer.from([0x0a, sandbox.id.length]),
    Buffer.from(sandbox.id),
    Buffer.from([0x12, 4]),
    Buffer.from(lasting),
  ]);
  const frames = Array.from({ length: 1025 }, (_, index) => encodeRequest(index * 2 + 1, 0, prefix, wait));
  const answers = await answersTo(server.socket, Buffer.concat(frames), 1);
  assert.deepEqual([...answers], [[2049, "RATE_LIMITED"]]);
});

test("an id that could be a path names nothing and is not looked up", async () => {
  await using server = await startServer();
  const client = new TestClient(server.socket);
  for (const sandboxId of ["../../etc", "sb_\0", "sb_ABC", `sb_${"a".repeat(100)}`, "session:../x"]) {
    await assert.rejects(
      client.unary(SandboxService.method.getSandbox, { sandboxId }),
      codeIs("SANDBOX_NOT_FOUND"),
    );
  }
  client.close();
});
