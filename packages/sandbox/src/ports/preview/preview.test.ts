import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { entryUrl, hostOf, originOf, type Pass } from "./gate.ts";
import { openPreview } from "./server.ts";

const label = "fw-0123456789abcdef";
const token = "t0ken-that-nobody-can-guess";

interface Answer {
  status: number;
  headers: IncomingMessage["headers"];
  body: string;
}

/** A preview of a server that says what it heard. */
async function opened() {
  const heard: IncomingMessage[] = [];
  const server = createServer((incoming, response) => {
    heard.push(incoming);
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk) => chunks.push(chunk));
    incoming.on("end", () => {
      if (incoming.url === "/away") response.setHeader("location", `http://localhost:${port}/there`);
      response.setHeader("set-cookie", ["a=1; Domain=localhost; Path=/", "caisson-preview=stolen; Path=/"]);
      response.end(`${incoming.method} ${incoming.url} ${Buffer.concat(chunks)}`);
    });
  });
  server.on("upgrade", (incoming, socket) => {
    heard.push(incoming);
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.pipe(socket);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const dial = async () => connect(port, "127.0.0.1");
  const entrance = await openPreview(0, { label, token, port, dial });
  const pass: Pass = { label, token, hostPort: entrance.hostPort };
  const ask = (path: string, headers: Record<string, string> = {}, method = "GET", body = "") =>
    send(pass.hostPort, path, { host: hostOf(pass), ...headers }, method, body);
  const dispose = async () => {
    entrance.close();
    server.closeAllConnections();
    server.close();
  };
  return { heard, port, pass, ask, entrance, [Symbol.asyncDispose]: dispose };
}

function send(
  port: number,
  path: string,
  headers: Record<string, string>,
  method: string,
  body: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path, method, headers, setHost: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () =>
        resolve({
          status: answer.statusCode!,
          headers: answer.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** Enters as a browser does and returns the cookie that it then sends. */
async function enter(preview: Awaited<ReturnType<typeof opened>>): Promise<string> {
  const url = new URL(entryUrl(preview.pass));
  const { status, headers } = await preview.ask(url.pathname + url.search);
  assert.equal(status, 303);
  assert.equal(headers.location, "/");
  assert.equal(headers["referrer-policy"], "no-referrer");
  const [cookie] = headers["set-cookie"]!;
  assert.match(cookie!, /; HttpOnly; SameSite=Lax$/);
  assert.ok(!cookie!.includes(token));
  return cookie!.split(";")[0]!;
}

test("the token lets a browser in, and neither it nor the cookie reaches the server inside", async () => {
  await using preview = await opened();
  const cookie = await enter(preview);
  const referer = `${originOf(preview.pass)}/page`;
  const headers = { cookie: `x=1; ${cookie}; y=2`, origin: originOf(preview.pass), referer };
  const { status, body } = await preview.ask("/api?q=1", headers, "POST", "hello");
  assert.deepEqual([status, body], [200, "POST /api?q=1 hello"]);
  const [heard] = preview.heard;
  assert.equal(heard!.headers.cookie, "x=1; y=2");
  assert.equal(heard!.headers.host, `localhost:${preview.port}`);
  assert.equal(heard!.headers.origin, `http://localhost:${preview.port}`);
  assert.equal(heard!.headers.referer, `http://localhost:${preview.port}/page`);
  assert.ok(!JSON.stringify(heard!.rawHeaders).includes(token));
});

test("without the token, with a wrong one, or under another name nobody comes in", async () => {
  await using preview = await opened();
  const cookie = await enter(preview);
  const { hostPort } = preview.pass;
  const refused: [string, Record<string, string>, number][] = [
    ["/", {}, 403],
    ["/", { cookie: "caisson-preview=0" }, 403],
    ["/", { "x-caisson-token": "wrong" }, 403],
    ["/.caisson/open?token=wrong", {}, 403],
    ["/.caisson/open", {}, 404],
    ["/.caisson/else", { cookie }, 404],
    ["/", { cookie, host: `evil.example:${hostPort}` }, 421],
    ["/", { cookie, host: `localhost:${hostPort}` }, 421],
    ["/", { cookie, host: `fw-other.localhost:${hostPort}` }, 421],
    // By its address the cookie counts for nothing, and the token makes none there.
    ["/", { cookie, host: `127.0.0.1:${hostPort}` }, 403],
    [`/.caisson/open?token=${token}`, { host: `127.0.0.1:${hostPort}` }, 404],
    ["/", { cookie, origin: "http://evil.example" }, 403],
    ["/", { cookie, origin: "null" }, 403],
    ["/", { cookie, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }, 403],
    ["/", { cookie, "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }, 403],
    [
      "/",
      { cookie, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
      403,
    ],
  ];
  for (const [path, headers, status] of refused) {
    const answer = await preview.ask(path, headers);
    assert.equal(answer.status, status, `${path} ${JSON.stringify(headers)}`);
    assert.ok(!answer.body.includes(token));
  }
  assert.equal(preview.heard.length, 0);
  const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
  assert.equal((await preview.ask("/", { cookie, ...link })).status, 200);
  assert.equal((await preview.ask("/", { cookie, ...link }, "POST")).status, 403);
});

test("programs that are no browsers come in by a header, which goes no further", async () => {
  await using preview = await opened();
  const headers = { "x-caisson-token": token, host: `127.0.0.1:${preview.pass.hostPort}`, cookie: "own=1" };
  assert.equal((await preview.ask("/", headers)).status, 200);
  assert.equal(preview.heard[0]!.headers["x-caisson-token"], undefined);
  assert.equal(preview.heard[0]!.headers.cookie, "own=1");
});

test("what the server says of itself is said of the preview, and it cannot set the preview's cookie", async () => {
  await using preview = await opened();
  const { headers } = await preview.ask("/away", { cookie: await enter(preview) });
  assert.equal(headers.location, `${originOf(preview.pass)}/there`);
  assert.deepEqual(headers["set-cookie"], ["a=1; Path=/"]);
});

test("a WebSocket passes both ways, from the preview's own pages only", async () => {
  await using preview = await opened();
  const cookie = await enter(preview);
  const upgrade = (origin: string, more: Record<string, string> = { cookie }) =>
    new Promise<{ status: number; echo: string }>((resolve, reject) => {
      const asked = request({
        host: "127.0.0.1",
        port: preview.pass.hostPort,
        headers: { host: hostOf(preview.pass), connection: "Upgrade", upgrade: "websocket", origin, ...more },
        setHost: false,
      });
      asked.on("upgrade", (answer, socket) => {
        socket.write("ping");
        socket.once("data", (data) => {
          socket.destroy();
          resolve({ status: answer.statusCode!, echo: data.toString() });
        });
      });
      asked.on("response", (answer) => resolve({ status: answer.statusCode!, echo: "" }));
      asked.on("error", reject);
      asked.end();
    });
  assert.deepEqual(await upgrade(originOf(preview.pass)), { status: 101, echo: "ping" });
  assert.equal(preview.heard[0]!.headers.origin, `http://localhost:${preview.port}`);
  assert.equal(preview.heard[0]!.headers.cookie, undefined);
  assert.equal((await upgrade("http://evil.example")).status, 403);
  assert.equal((await upgrade(originOf(preview.pass), {})).status, 403);
  assert.equal(preview.heard.length, 1);
});

test("a server that is not there, or speaks no HTTP, is an error of the preview", async () => {
  const nobody = await openPreview(0, {
    label,
    token,
    port: 80,
    dial: () => Promise.reject(new Error("closed")),
  });
  const garbage = createServer();
  garbage.on("connection", (socket) => socket.end("what?\n\n"));
  await once(garbage.listen(0, "127.0.0.1"), "listening");
  const { port } = garbage.address() as AddressInfo;
  const strange = await openPreview(0, { label, token, port, dial: async () => connect(port, "127.0.0.1") });
  for (const { hostPort } of [nobody, strange]) {
    const headers = { host: `127.0.0.1:${hostPort}`, "x-caisson-token": token };
    assert.equal((await send(hostPort, "/", headers, "GET", "")).status, 502);
  }
  nobody.close();
  strange.close();
  garbage.close();
});

test("closing cuts off whoever is in, and the port is free again", async () => {
  await using preview = await opened();
  const socket = connect(preview.pass.hostPort, "127.0.0.1");
  await once(socket, "connect");
  preview.entrance.close();
  await once(socket, "close");
  await assert.rejects(preview.ask("/"), { code: "ECONNREFUSED" });
});
