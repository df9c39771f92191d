import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { NameResolver } from "./resolver.ts";
import { listen, makeRig, readAll, readUntil } from "./testing/rig.ts";

const loopback = ["127.0.0.1", "::1"];

async function httpServer(handle: (message: IncomingMessage) => string) {
  const seen: string[] = [];
  const server = createHttpServer((message, response) => {
    seen.push(`${message.method} ${message.url} ${message.headers.host}`);
    response.end(handle(message));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, seen, close: () => server.close() };
}

test("an allowed name is looked up, judged, dialled and relayed by CONNECT", async () => {
  await using rig = await makeRig({ allow: ["allowed.example", ...loopback] });
  rig.names.set("allowed.example", ["127.0.0.1"]);
  const echo = await listen((socket) => socket.pipe(socket));
  const program = rig.connect("proxy");
  program.write(
    `CONNECT allowed.example:${echo.port} HTTP/1.1\r\nHost: allowed.example:${echo.port}\r\n\r\n`,
  );
  assert.match(await readUntil(program, /\r\n\r\n/), /^HTTP\/1.1 200 /);
  program.write("\0binary");
  assert.equal(await readUntil(program, /binary/), "\0binary");
  program.end();
  await readAll(program);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const [allowed] = rig.told("network.allowed");
  assert.deepEqual(
    { name: allowed!.name, address: allowed!.address, rule: allowed!.rule, via: allowed!.via },
    { name: "allowed.example", address: "127.0.0.1", rule: "allowed.example", via: "connect" },
  );
  const [closed] = rig.told("network.closed");
  assert.deepEqual([closed!.sent, closed!.received], [7, 7]);
  echo.close();
});

test("a refused name is told so, and no question about it leaves", async () => {
  await using rig = await makeRig({ allow: ["allowed.example"] });
  rig.names.set("secret-data.evil.example", ["127.0.0.1"]);
  const program = rig.connect("proxy");
  program.write(
    "CONNECT secret-data.evil.example:443 HTTP/1.1\r\nHost: secret-data.evil.example:443\r\n\r\n",
  );
  const answer = await readAll(program);
  assert.match(answer, /^HTTP\/1.1 403 caisson: no rule allows secret-data.evil.example:443/);
  assert.match(answer, /caisson net set sb_test --allow secret-data.evil.example:443/);
  assert.deepEqual(rig.names.questions, []);
  assert.equal(rig.told("network.refused")[0]!.rule, "no rule");
});

test("an allowed name that leads to a private address is refused, and nothing is dialled", async () => {
  await using rig = await makeRig({ allow: ["allowed.example"] });
  let dialled = 0;
  const server = await listen(() => dialled++);
  rig.names.set("allowed.example", ["127.0.0.1", "10.0.0.1", "fd00::1"]);
  const program = rig.connect("proxy");
  program.write(
    `CONNECT allowed.example:${server.port} HTTP/1.1\r\nHost: allowed.example:${server.port}\r\n\r\n`,
  );
  assert.match(
    await readAll(program),
    /403 caisson: allowed.example leads to 127.0.0.1, which is a loopback address that no rule names/,
  );
  assert.equal(dialled, 0);
  server.close();
});

test("plain requests to the proxy get the same verdict, and their Host must name the target", async () => {
  await using rig = await makeRig({ allow: ["allowed.example", ...loopback] });
  rig.names.set("allowed.example", ["127.0.0.1"]);
  const web = await httpServer(
    (message) => `hello ${message.headers["proxy-authorization"]} ${message.headers["x-own"]}`,
  );
  const program = rig.connect("proxy");
  const at = `allowed.example:${web.port}`;
  program.write(
    `GET http://${at}/a?b HTTP/1.1\r\nHost: ${at}\r\nProxy-Authorization: Basic x\r\nConnection: x-own\r\nX-Own: 1\r\n\r\n`,
  );
  assert.match(await readUntil(program, /hello undefined undefined/), /^HTTP\/1.1 200 OK/);
  program.write(`GET http://${at}/second HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
  await readUntil(program, /hello/);
  assert.deepEqual(web.seen, [`GET /a?b ${at}`, `GET /second ${at}`]);
  assert.equal(rig.told("network.allowed").length, 1);
  for (const [line, host, status] of [
    [`GET http://${at}/ HTTP/1.1`, "Host: other.example", 403],
    [`GET http://other.example:${web.port}/ HTTP/1.1`, `Host: other.example:${web.port}`, 403],
    [`GET http://user:pw@${at}/ HTTP/1.1`, `Host: ${at}`, 403],
    [`GET http://${at}/ HTTP/1.1`, `Host: ${at}\r\nHost: other.example`, 403],
    [`GET https://${at}/ HTTP/1.1`, `Host: ${at}`, 403],
    [`GET / HTTP/1.1`, `Host: ${at}`, 403],
    [`POST http://${at}/ HTTP/1.1`, `Host: ${at}\r\nContent-Length: 3\r\nTransfer-Encoding: chunked`, "4.."],
    [`POST http://${at}/ HTTP/1.1`, `Host: ${at}\r\nContent-Length: 3\r\nContent-Length: 4`, "4.."],
    [`POST http://${at}/ HTTP/1.1`, `Host: ${at}\r\nTransfer-Encoding: chunked, identity`, "4.."],
    [`GET http://${at}/ HTTP/1.1`, `Host: ${at}\r\nX: a\nb`, "4.."],
  ] as const) {
    const one = rig.connect("proxy");
    one.write(`${line}\r\n${host}\r\n\r\n`);
    assert.match(await readAll(one), new RegExp(`^HTTP/1.1 ${status} `), `${line} ${host}`);
  }
  assert.equal(web.seen.length, 2);
  web.close();
});

test("a body goes through whole in both directions", async () => {
  await using rig = await makeRig({ allow: loopback });
  const server = createHttpServer((message, response) => message.pipe(response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const program = rig.connect("transparent", "127.0.0.1", port);
  const body = "x".repeat(300_000);
  program.write(
    `POST / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
  const answer = await readAll(program);
  assert.ok(answer.includes("x".repeat(10_000)));
  assert.equal((answer.match(/x/g) ?? []).length >= 300_000, true);
  server.close();
});

test("a large answer comes whole to a slow program, also when the server closes at once", async () => {
  await using rig = await makeRig({ allow: loopback });
  const size = 32 << 20;
  const server = createHttpServer((_, response) => response.end(Buffer.alloc(size, "x")));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const program = rig.connect("transparent", "127.0.0.1", port);
  program.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`);
  let bytes = 0;
  for await (const chunk of program) {
    bytes += chunk.length;
    if (bytes % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.ok(bytes > size, `only ${bytes} bytes`);
  server.close();
});

test("plain requests of a program that knows no proxy must name the judged host", async () => {
  await using rig = await makeRig({ allow: ["allowed.example", ...loopback] });
  rig.names.set("allowed.example", ["127.0.0.1"]);
  const web = await httpServer(() => "hello");
  const program = rig.connect("transparent", "allowed.example", web.port);
  program.write(`GET / HTTP/1.1\r\nHost: allowed.example:${web.port}\r\n\r\n`);
  assert.match(await readUntil(program, /hello/), /200 OK/);
  program.write(`GET / HTTP/1.1\r\nHost: other.example\r\n\r\n`);
  assert.match(await readAll(program), /403 caisson: a request to allowed.example:\d+ names another host/);
  const lower = rig.connect("transparent", "allowed.example", web.port);
  lower.write("\r\nget / HTTP/1.1\r\nHost: other.example\r\n\r\n");
  assert.match(await readAll(lower), /^HTTP\/1.1 400/);
  assert.equal(web.seen.length, 1);
  web.close();
});

test("SOCKS5 takes names and addresses, and answers refusals by its own codes", async () => {
  await using rig = await makeRig({ allow: ["allowed.example", "127.0.0.1"] });
  rig.names.set("allowed.example", ["127.0.0.1"]);
  const echo = await listen((socket) => socket.pipe(socket));
  const ask = async (address: Buffer, port: number) => {
    const program = rig.connect("proxy");
    program.write(Buffer.from([5, 1, 0]));
    const portBytes = Buffer.alloc(2);
    portBytes.writeUInt16BE(port);
    program.write(Buffer.concat([Buffer.from([5, 1, 0]), address, portBytes]));
    const answer = await readUntil(program, /^..[\s\S]{10}/);
    return { program, code: answer.charCodeAt(3) };
  };
  const name = (text: string) => Buffer.concat([Buffer.from([3, text.length]), Buffer.from(text, "latin1")]);
  const { program, code } = await ask(name("allowed.example"), echo.port);
  assert.equal(code, 0);
  program.write("ping");
  assert.equal(await readUntil(program, /ping/), "ping");
  program.destroy();
  assert.equal((await ask(Buffer.from([1, 127, 0, 0, 1]), echo.port)).code, 0);
  assert.equal((await ask(name("other.example"), echo.port)).code, 2);
  assert.equal((await ask(name("allowed.example\0.evil"), echo.port)).code, 2);
  assert.equal((await ask(name("allowed.example\r\n"), echo.port)).code, 2);
  assert.equal((await ask(Buffer.from([4, ...Array(15).fill(0), 1]), echo.port)).code, 2);
  assert.equal((await ask(Buffer.from([1, 127, 0, 0, 1]), 1)).code, 5);
  echo.close();
});

test("new rules hold at once, also for open connections", async () => {
  await using rig = await makeRig({ allow: ["allowed.example", "other.example", ...loopback] });
  rig.names.set("allowed.example", ["127.0.0.1"]);
  rig.names.set("other.example", ["127.0.0.1"]);
  const echo = await listen((socket) => socket.pipe(socket));
  const open = async (name: string) => {
    const program = rig.connect("transparent", name, echo.port);
    program.write("\0ping");
    await readUntil(program, /ping/);
    return program;
  };
  const [one, two] = [await open("allowed.example"), await open("other.example")];
  assert.equal(rig.door.usage.connections, 2);
  const cut = rig.door.update(rig.policy({ allow: ["other.example", "127.0.0.1"] }), rig.door.limits);
  assert.equal(cut, 1);
  await readAll(one);
  two.write("pong");
  assert.match(await readUntil(two, /pong/), /pong/);
  rig.door.update(rig.policy({ mode: "off" }), rig.door.limits);
  await readAll(two);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(rig.door.usage.connections, 0);
  assert.match(String(rig.told("network.closed")[0]!.cut), /no rule allows allowed.example/);
  echo.close();
});

test("half-closed connections pass what still comes", async () => {
  await using rig = await makeRig({ allow: loopback });
  const server = await listen((socket) => {
    let got = "";
    socket.on("data", (chunk) => {
      got += chunk;
    });
    socket.on("end", () => socket.end(`got ${got}`));
  });
  const program = rig.connect("transparent", "127.0.0.1", server.port);
  program.end("\0all");
  assert.equal(await readAll(program), "got \0all");
  server.close();
});

test("a server that speaks first is heard", async () => {
  await using rig = await makeRig({ allow: loopback });
  const server = await listen((socket) => {
    socket.write("220 hello\r\n");
    socket.on("data", (chunk) => socket.write(`you said ${chunk}`));
  });
  const program = rig.connect("transparent", "127.0.0.1", server.port);
  await readUntil(program, /220 hello/);
  program.write("QUIT\r\n");
  await readUntil(program, /you said QUIT/);
  server.close();
});

test("limits bound connections, their rate and their bytes", async () => {
  const echo = await listen((socket) => socket.pipe(socket));
  await using few = await makeRig({ allow: loopback }, { limits: { connections: 2 } });
  const first = few.connect("transparent", "127.0.0.1", echo.port);
  few.connect("transparent", "127.0.0.1", echo.port);
  await readAll(few.connect("transparent", "127.0.0.1", echo.port));
  assert.equal(few.told("network.refused")[0]!.rule, "connections");
  first.destroy();
  await using slow = await makeRig({ allow: loopback }, { limits: { connectionsPerSecond: 2 } });
  for (let i = 0; i < 20; i++) slow.connect("transparent", "127.0.0.1", echo.port);
  assert.equal(slow.told("network.refused").length, 1);
  slow.door.decisions.flush();
  assert.equal(slow.told("network.refused")[1]!.count, 15);
  await using little = await makeRig({ allow: loopback }, { limits: { bytes: 1000 } });
  const program = little.connect("transparent", "127.0.0.1", echo.port);
  program.write(Buffer.alloc(2000));
  await readAll(program);
  await readAll(little.connect("transparent", "127.0.0.1", echo.port));
  assert.equal(little.told("network.refused")[0]!.rule, "bytes");
  await using idle = await makeRig({ allow: loopback }, { limits: { idleTimeoutMs: 100 } });
  const quiet = idle.connect("transparent", "127.0.0.1", echo.port);
  await readAll(quiet);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(idle.told("network.closed")[0]!.cut, "nothing passed for too long");
  // A name server that never answers.
  await using late = await makeRig({ allow: ["silent.example"] }, { limits: { connectTimeoutMs: 50 } });
  late.names.silence();
  const waiting = late.connect("proxy");
  waiting.write("CONNECT silent.example:443 HTTP/1.1\r\nHost: silent.example:443\r\n\r\n");
  assert.match(await readAll(waiting), /^HTTP\/1.1 50[0-9] /);
  echo.close();
});

test("what leaves in the heads of requests counts too", async () => {
  const web = await httpServer(() => "ok");
  await using rig = await makeRig({ allow: loopback }, { limits: { bytes: 5000 } });
  const program = rig.connect("proxy");
  const target = `127.0.0.1:${web.port}`;
  program.write(`GET http://${target}/ HTTP/1.1\r\nHost: ${target}\r\nX: ${"x".repeat(6000)}\r\n\r\n`);
  await readAll(program);
  web.close();
  while (rig.told("network.closed").length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(rig.told("network.closed")[0]!.cut, "the sandbox has used up its bytes");
  assert.ok((rig.told("network.closed")[0]!.sent as number) > 6000);
});

test("a target that takes too long, by its name or by its address, is given up within the limit", async () => {
  const limits = { connectTimeoutMs: 50 };
  const nobody = { resolve: () => new Promise<never>(() => {}) } as unknown as NameResolver;
  await using rig = await makeRig({ allow: ["slow.example"] }, { limits, resolver: nobody });
  const program = rig.connect("proxy");
  program.write("CONNECT slow.example:443 HTTP/1.1\r\nHost: slow.example:443\r\n\r\n");
  assert.match(await readAll(program), /^HTTP\/1\.1 504 caisson: .* did not answer in time/);
  assert.equal(rig.told("network.failed").length, 1);
});

test("under ask, the answer decides, and nothing is looked up before it", async () => {
  const echo = await listen((socket) => socket.pipe(socket));
  const asked: string[] = [];
  let answer = { allow: true, scope: "once" as "once" | "sandbox", by: "uid:1" };
  await using rig = await makeRig(
    { mode: "ask", allow: ["127.0.0.1"], deny: ["denied.example"] },
    {
      ask: async ({ name, port }) => {
        asked.push(`${name}:${port}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
        return answer;
      },
    },
  );
  for (const name of ["new.example", "denied.example", "no.example"]) rig.names.set(name, ["127.0.0.1"]);
  const ping = async (name: string) => {
    const program = rig.connect("transparent", name, echo.port);
    program.write("\0ping");
    return readUntil(program, /ping/).then(
      () => "through",
      () => "refused",
    );
  };
  assert.equal(await ping("new.example"), "through");
  assert.deepEqual(asked, [`new.example:${echo.port}`]);
  assert.equal(await ping("denied.example"), "refused");
  assert.equal(asked.length, 1);
  answer = { allow: false, scope: "once", by: "uid:1" };
  assert.equal(await ping("no.example"), "refused");
  assert.ok(!rig.names.questions.includes("A no.example"));
  answer = { allow: true, scope: "sandbox", by: "uid:1" };
  assert.equal(await ping("no.example"), "through");
  echo.close();
});
