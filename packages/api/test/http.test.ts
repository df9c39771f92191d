import assert from "node:assert/strict";
import { connect as connectHttp2, constants } from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ownerIdentity } from "../src/auth/identity.ts";
import { ownerGate } from "../src/faces/http/gate.ts";
import { createHttpServers } from "../src/faces/http/server.ts";
import { secrets } from "./fakes.ts";
import { send, sendRaw } from "./http-client.ts";
import { startServer } from "./server.ts";

const alive = async (port: number) => assert.equal((await send(port, "/v1/health")).status, 200);

/** A gRPC message as it is framed, with a length that need not be true. */
function grpcFrame(length: number, payload: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, payload]);
}

async function grpc(
  port: number,
  method: string,
  body: Uint8Array,
  headers: Record<string, string> = {},
): Promise<string> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  try {
    return await new Promise((resolve, reject) => {
      const stream = session.request({
        ":method": "POST",
        ":path": `/caisson.v1.${method}`,
        "content-type": "application/grpc",
        te: "trailers",
        authorization: `Bearer ${secrets.all}`,
        ...headers,
      });
      let status: string | undefined;
      stream.on("response", (response) => {
        status = response["grpc-status"] as string | undefined;
      });
      stream.on("trailers", (trailers) => {
        status = trailers["grpc-status"] as string;
      });
      stream.on("error", reject);
      stream.on("close", () => resolve(status ?? "none"));
      stream.resume();
      stream.end(body);
    });
  } finally {
    session.destroy();
  }
}

test("malformed gRPC frames get an error and never hang", async () => {
  await using server = await startServer();
  const health = "SystemService/GetHealth";
  assert.equal(await grpc(server.port, health, grpcFrame(0, new Uint8Array(0))), "0");
  assert.notEqual(await grpc(server.port, health, new Uint8Array(0)), "0", "no message");
  assert.notEqual(await grpc(server.port, health, Buffer.from([0, 0])), "0", "half a header");
  assert.notEqual(
    await grpc(server.port, health, grpcFrame(100, Buffer.from("short"))),
    "0",
    "a length that lies",
  );
  assert.equal(
    await grpc(server.port, health, grpcFrame(0xffffffff, Buffer.from("x"))),
    "8",
    "4 GiB announced",
  );
  assert.notEqual(
    await grpc(server.port, health, grpcFrame(2, Buffer.from([0x0a, 0xff]))),
    "0",
    "no protobuf",
  );
  assert.notEqual(await grpc(server.port, health, grpcFrame(1, Buffer.from("x"), 1)), "0", "compressed");
  const gzip = await grpc(server.port, health, grpcFrame(1, Buffer.from("x"), 1), {
    "grpc-encoding": "gzip",
  });
  assert.equal(gzip, "12", "an encoding that is not accepted");
  await alive(server.port);
});

test("a deadline of nothing is over at once", async () => {
  await using server = await startServer();
  const wait = Buffer.from("\x0a\x13sb_0123456789abcdef\x12\x04p999", "latin1");
  assert.equal(
    await grpc(server.port, "ProcessService/WaitProcess", grpcFrame(wait.length, wait), {
      "grpc-timeout": "0m",
    }),
    "4",
  );
  assert.notEqual(
    await grpc(server.port, "ProcessService/WaitProcess", grpcFrame(wait.length, wait), {
      "grpc-timeout": "x",
    }),
    "0",
  );
});

test("headers that never end are cut off", async () => {
  await using server = await startServer();
  const answer = await sendRaw(
    server.port,
    `GET / HTTP/1.1\r\nhost: localhost\r\n${"x: y\r\n".repeat(10_000)}`,
  );
  assert.match(answer.toString(), /^HTTP\/1\.1 400 /);
  assert.match(answer.toString(), /INVALID_INPUT/);
});

test("what is not HTTP gets an answer that says so", async () => {
  await using server = await startServer();
  for (const bytes of [
    "hello\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
    "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
  ]) {
    assert.match((await sendRaw(server.port, bytes)).toString(), /^HTTP\/1\.1 400 /, bytes);
  }
  assert.equal(
    (await sendRaw(server.port, Buffer.from([0, 0, 0, 1, 0]))).length,
    0,
    "ttRPC is not served here",
  );
  await alive(server.port);
});

test("a client that sends a header a minute is cut off", async () => {
  const servers = createHttpServers(ownerGate(ownerIdentity(0)), () => {}, {
    headersMs: 100,
    requestMs: 200,
    idleMs: 100,
  });
  const listener = createServer((socket) => servers.http1(socket)).listen(0, "127.0.0.1");
  await new Promise((resolve) => listener.once("listening", resolve));
  const { port } = listener.address() as { port: number };
  const answer = await sendRaw(port, "GET / HTTP/1.1\r\nhost: localhost\r\n");
  assert.match(answer.toString(), /^HTTP\/1\.1 408 /);
  servers.close();
  listener.close();
});

test("streams that are opened and reset at once end the connection, not the server", async () => {
  await using server = await startServer();
  const session = connectHttp2(server.url);
  let closed = false;
  session.on("error", () => {});
  session.on("goaway", () => {
    closed = true;
  });
  session.on("close", () => {
    closed = true;
  });
  await new Promise((resolve) => session.once("connect", resolve));
  for (let count = 0; count < 5000 && !closed; count++) {
    const stream = session.request({ ":path": "/v1/events", authorization: `Bearer ${secrets.all}` });
    stream.on("error", () => {});
    stream.close(constants.NGHTTP2_CANCEL);
    if (count % 50 === 0) await sleep(1);
  }
  for (let waited = 0; !closed && waited < 5000; waited += 10) await sleep(10);
  assert.equal(closed, true);
  session.destroy();
  await alive(server.port);
});

test("a flood of CONTINUATION frames ends the connection, not the server", async () => {
  await using server = await startServer();
  const frame = (type: number, flags: number, stream: number, payload: Buffer) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(stream, 5);
    return Buffer.concat([head, payload]);
  };
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  socket.write(frame(4, 0, 0, Buffer.alloc(0)));
  // A header block that is never finished: `x: aaaa…` without indexing, over and over.
  const block = Buffer.concat([
    Buffer.from([0, 1]),
    Buffer.from("x"),
    Buffer.from([100]),
    Buffer.alloc(100, 97),
  ]);
  socket.write(frame(1, 0, 1, block));
  for (let count = 0; count < 20_000 && !socket.destroyed; count++) {
    if (!socket.write(frame(9, 0, 1, block))) {
      await new Promise<void>((resolve) => {
        socket.once("drain", resolve);
        socket.once("close", () => resolve());
      });
    }
  }
  await closed;
  await alive(server.port);
});

test("a thousand readers of the event stream are served side by side", async () => {
  await using server = await startServer();
  const before = process.memoryUsage().rss;
  const sockets = Array.from({ length: 300 }, () => connect(server.port, "127.0.0.1"));
  const head = `GET /v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${secrets.all}\r\n\r\n`;
  const seen = sockets.map(
    (socket) =>
      new Promise<void>((resolve) => {
        let text = "";
        socket.on("error", () => {});
        socket.on("data", (chunk) => {
          text += chunk;
          if (text.includes("id: 3") || text.includes("429")) resolve();
        });
        socket.write(head);
      }),
  );
  await Promise.all(seen);
  for (const socket of sockets) socket.destroy();
  assert.ok(process.memoryUsage().rss - before < 300e6);
});

test("connections beyond the bound are closed, and the others are served", async () => {
  await using server = await startServer({ network: { maxConnections: 3 } });
  const open = () =>
    new Promise<{ socket: Socket; closed: () => boolean }>((resolve) => {
      let closed = false;
      const socket = connect(server.port, "127.0.0.1", () => resolve({ socket, closed: () => closed }));
      socket.on("error", () => {});
      socket.on("close", () => {
        closed = true;
      });
    });
  const all = [];
  for (let count = 0; count < 8; count++) all.push(await open());
  for (let waited = 0; all.filter(({ closed }) => closed()).length < 5; waited += 10) {
    assert.ok(waited < 10_000, "too many are open");
    await sleep(10);
  }
  const [first] = all.filter(({ closed }) => !closed());
  const answered = new Promise((resolve) => first!.socket.once("data", resolve));
  first!.socket.write("GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  assert.match(String(await answered), /^HTTP\/1\.1 200/);
  for (const { socket } of all) socket.destroy();
});
