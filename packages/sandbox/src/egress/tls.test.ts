import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Duplex, duplexPair } from "node:stream";
import { test } from "node:test";
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { readClientHello } from "./client-hello.ts";
import type { Interceptor } from "./seams.ts";
import { makeRig, readAll, readUntil } from "./testing/rig.ts";

/** The first bytes of a real TLS client. */
async function helloOf(servername?: string): Promise<Buffer> {
  const [client, server] = duplexPair();
  const socket = connectTls({ socket: client, ...(servername ? { servername } : {}) });
  socket.on("error", () => {});
  const [first] = (await once(server, "data")) as [Buffer];
  socket.destroy();
  return first;
}

function withExtension(hello: Buffer, type: number, data: Buffer): Buffer {
  const extension = Buffer.concat([
    Buffer.from([type >> 8, type & 255, data.length >> 8, data.length & 255]),
    data,
  ]);
  const body = hello.subarray(5);
  let at = 4 + 34;
  at += 1 + body[at]!;
  at += 2 + body.readUInt16BE(at);
  at += 1 + body[at]!;
  const extended = Buffer.concat([body, extension]);
  extended.writeUInt16BE(body.readUInt16BE(at) + extension.length, at);
  extended.writeUIntBE(extended.length - 4, 1, 3);
  const head = Buffer.from(hello.subarray(0, 5));
  head.writeUInt16BE(extended.length, 3);
  return Buffer.concat([head, extended]);
}

test("the name of a hello is read however the hello is cut into records and pieces", async () => {
  const hello = await helloOf("allowed.example");
  assert.deepEqual(readClientHello(hello), { serverName: "allowed.example", encrypted: false });
  for (let length = 0; length < hello.length; length++)
    assert.equal(readClientHello(hello.subarray(0, length)), "more");
  const body = hello.subarray(5);
  for (const size of [1, 3, 50]) {
    const records: Buffer[] = [];
    for (let at = 0; at < body.length; at += size) {
      const part = body.subarray(at, at + size);
      records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
    }
    assert.deepEqual(readClientHello(Buffer.concat(records)), {
      serverName: "allowed.example",
      encrypted: false,
    });
  }
});

test("a hello without a name, with a hidden one, or with two is told apart", async () => {
  assert.deepEqual(readClientHello(await helloOf()), { serverName: undefined, encrypted: false });
  const hello = await helloOf("allowed.example");
  const hidden = readClientHello(withExtension(hello, 0xfe0d, Buffer.alloc(20)));
  assert.deepEqual(hidden, { serverName: "allowed.example", encrypted: true });
  assert.equal(readClientHello(withExtension(hello, 0, Buffer.from("\0\x08\0\0\x05other", "latin1"))), "bad");
});

test("what is no hello is bad, and nothing makes it read beyond its end", async () => {
  const hello = await helloOf("allowed.example");
  assert.equal(readClientHello(Buffer.from([22, 2, 0, 0, 5])), "bad");
  assert.equal(readClientHello(Buffer.from([22, 3, 1, 0xff, 0xff, 1])), "bad");
  assert.equal(readClientHello(Buffer.from([22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff])), "bad");
  for (let i = 0; i < 5000; i++) {
    const broken = Buffer.from(hello);
    for (let n = 0; n < 3; n++) broken[(i * 7 + n * 131) % broken.length] = (i * 31 + n * 17) & 255;
    readClientHello(broken);
    readClientHello(broken.subarray(0, i % broken.length));
  }
});

function certificate() {
  const dir = mkdtempSync(join(tmpdir(), "caisson-tls-"));
  const args =
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout k -out c -subj /CN=allowed.example -days 2";
  execFileSync("openssl", args.split(" "), { cwd: dir, stdio: "pipe" });
  const made = { key: readFileSync(join(dir, "k")), cert: readFileSync(join(dir, "c")) };
  rmSync(dir, { recursive: true });
  return made;
}

async function tlsServer() {
  const names: (string | false)[] = [];
  const server = createTlsServer(certificate(), (socket: TLSSocket) => {
    names.push(socket.servername ?? false);
    socket.on("error", () => {});
    socket.end("hello");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, names, close: () => server.close() };
}

function secure(stream: Duplex, servername?: string): Promise<string> {
  const socket = connectTls({
    socket: stream,
    rejectUnauthorized: false,
    ...(servername ? { servername } : {}),
  });
  return readAll(socket);
}

test("TLS goes through when it names the judged host, and not otherwise", async () => {
  const server = await tlsServer();
  await using rig = await makeRig({ allow: ["allowed.example", "127.0.0.1"] });
  rig.names.set("allowed.example", ["127.0.0.1"]);
  const at = () => rig.connect("transparent", "allowed.example", server.port);
  assert.equal(await secure(at(), "allowed.example"), "hello");
  assert.equal(await secure(at(), "other.example"), "");
  assert.equal(await secure(at()), "");
  const tunnel = rig.connect("proxy");
  tunnel.write(
    `CONNECT allowed.example:${server.port} HTTP/1.1\r\n\r\n`.replace(
      "\r\n\r\n",
      `\r\nHost: allowed.example:${server.port}\r\n\r\n`,
    ),
  );
  await readUntil(tunnel, /\r\n\r\n/);
  assert.equal(await secure(tunnel, "other.example"), "");
  assert.equal(await secure(rig.connect("transparent", "127.0.0.1", server.port)), "hello");
  assert.equal(
    await secure(rig.connect("transparent", "127.0.0.1", server.port), "allowed.example"),
    "hello",
  );
  assert.equal(await secure(rig.connect("transparent", "127.0.0.1", server.port), "other.example"), "");
  assert.deepEqual(server.names, ["allowed.example", false, "allowed.example"]);
  server.close();
});

test("a hidden server name is refused where names are judged, and not under on", async () => {
  const server = await tlsServer();
  const hidden = withExtension(await helloOf("allowed.example"), 0xfe0d, Buffer.alloc(20));
  for (const [mode, passes] of [
    ["allow", false],
    ["on", true],
  ] as const) {
    await using rig = await makeRig({ mode, allow: ["allowed.example", "127.0.0.1"] });
    rig.names.set("allowed.example", ["127.0.0.1"]);
    const program = rig.connect("transparent", "allowed.example", server.port);
    program.write(hidden);
    const answer = await Promise.race([readUntil(program, /./s).catch(() => ""), readAll(program)]);
    assert.equal(answer.length > 0, passes, mode);
    program.destroy();
    if (!passes) assert.equal(rig.told("network.refused")[0]!.rule, "encrypted server name");
  }
  server.close();
});

test("an interceptor gets the program's side from its first byte and dials the judged address", async () => {
  const server = await tlsServer();
  const seen: string[] = [];
  const interceptor: Interceptor = {
    wants: (name) => name === "secret.example",
    async serve(client, target, report) {
      seen.push(`${target.name}:${target.port} ${target.tls}`);
      const [first] = (await once(client, "data")) as [Buffer];
      seen.push(String(first[0]));
      const socket = await target.dial();
      seen.push(socket.remoteAddress!);
      socket.destroy();
      report("secret.injected", { name: target.name });
      client.destroy();
    },
    rewrite: (name, _port, headers) => [
      ...headers.map(([key, value]) => [key, value] as [string, string]),
      ["X-For", name],
    ],
  };
  await using rig = await makeRig({ allow: ["secret.example", "127.0.0.1"] }, { interceptor });
  rig.names.set("secret.example", ["127.0.0.1"]);
  await secure(rig.connect("transparent", "secret.example", server.port), "secret.example");
  assert.deepEqual(seen, [`secret.example:${server.port} true`, "22", "127.0.0.1"]);
  assert.equal(rig.told("secret.injected").length, 1);
  while (rig.told("network.closed").length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  server.close();
});
