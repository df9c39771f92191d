import assert from "node:assert/strict";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { type Duplex, duplexPair } from "node:stream";
import { test } from "node:test";
import { connect as tlsConnect } from "node:tls";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import type { Refusal } from "../egress/refusal.ts";
import { Authority } from "./authority.ts";
import type { Injection } from "./definition.ts";
import { type GrantedSecret, Injector } from "./injector.ts";
import { SecretInterceptor } from "./interceptor.ts";
import { startHost } from "./testing/host.ts";

const real = "ghp_RealValueThatMustNeverBeSeenInside";
const placeholder = "ghp_PlaceholderPlaceholderPlaceholder00";
const foreign = "csp_ForeignForeignForeignForeignForeign00";
const name = "api.example.test";

function secret(change: Partial<GrantedSecret> & { inject?: Injection[] } = {}): GrantedSecret {
  return {
    name: "TOKEN",
    placeholder,
    inject: ["header", "basic"],
    value: () => real,
    covers: (host, _port, tls) => host === name && tls,
    ...change,
  };
}

const others = secret({
  name: "OTHER",
  placeholder: foreign,
  value: () => "other-value-of-someone",
  covers: () => false,
});

/** A program, the interceptor and a real host. */
async function between(secrets: GrantedSecret[], options: { trusts?: boolean; sni?: string } = {}) {
  const host = await startHost(name);
  const record = Authority.make("one sandbox");
  const roots = options.trusts === false ? [] : [host.certificate];
  const interceptor = new SecretInterceptor(new Injector(secrets), new Authority(record), roots);
  const reported: [string, Record<string, unknown>][] = [];
  const [inside, outside] = duplexPair();
  const refused: string[] = [];
  const failed: string[] = [];
  const target = {
    name,
    port: host.port,
    tls: true,
    dial: host.dial,
    refused: ({ verdict }: Refusal) => void refused.push(verdict.rule),
    failed: (reason: string) => void failed.push(reason),
  };
  const served = interceptor.serve(outside, target, (type, data) => void reported.push([type, data]));
  const secure = tlsConnect({
    socket: inside,
    ca: record.certificate,
    servername: options.sni ?? name,
    ALPNProtocols: ["h2", "http/1.1"],
  });
  const call = (init: {
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: string | Buffer;
  }) =>
    new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
      const outgoing = request({
        createConnection: () => secure,
        method: init.method ?? "GET",
        path: init.path ?? "/",
        headers: { Host: `${name}:${host.port}`, Connection: "keep-alive", ...init.headers },
      });
      outgoing.on("error", reject);
      outgoing.on("response", async (incoming) => {
        let body = "";
        for await (const piece of incoming) body += piece;
        resolve({ status: incoming.statusCode!, headers: incoming.headers, body });
      });
      outgoing.end(init.body);
    });
  return {
    ...host,
    secure,
    call,
    reported,
    refused,
    failed,
    served,
    [Symbol.dispose]() {
      secure.destroy();
      outside.destroy();
      host[Symbol.dispose]();
    },
  };
}

test("a placeholder in a header becomes the value outside, and the value a placeholder on the way back", async () => {
  using both = await between([secret(), others]);
  const answer = await both.call({ headers: { Authorization: `Bearer ${placeholder}` } });
  assert.equal(both.heard[0]!.headers.authorization, `Bearer ${real}`);
  assert.equal(answer.status, 200);
  assert.ok(!JSON.stringify(answer).includes(real), JSON.stringify(answer));
  assert.match(answer.body, /ghp_PlaceholderPlaceholder/);
  assert.deepEqual(both.reported, [["secret.used", { secret: "TOKEN", name, port: both.port }]]);
  assert.equal(both.secure.alpnProtocol, "http/1.1");
});

test("an answer cannot be asked for in parts once a value is in the request", async () => {
  using both = await between([secret()]);
  await both.call({ headers: { "X-Key": placeholder, Range: "bytes=0-9" } });
  await both.call({ headers: { Range: "bytes=0-9" } });
  assert.deepEqual(
    both.heard.map(({ headers }) => headers.range),
    [undefined, "bytes=0-9"],
  );
});

test("basic credentials are filled in, and not given back in any form", async () => {
  using both = await between([secret()]);
  const basic = (password: string) => `Basic ${Buffer.from(`user:${password}`).toString("base64")}`;
  const answer = await both.call({ headers: { Authorization: basic(placeholder) } });
  assert.equal(both.heard[0]!.headers.authorization, basic(real));
  assert.ok(!JSON.stringify(answer).includes(basic(real).slice(6)));
});

test("a body is filled in only where that is configured, as its type needs it", async () => {
  using plain = await between([secret()]);
  await plain.call({
    method: "POST",
    body: `{"token":"${placeholder}"}`,
    headers: { "Content-Type": "application/json" },
  });
  assert.equal(plain.heard[0]!.body, `{"token":"${placeholder}"}`);
  const value = 'quo"te&more';
  using both = await between([secret({ inject: ["body"], value: () => value })]);
  const body = `{"token":"${placeholder}","pad":"${"x".repeat(100)}"}`;
  await both.call({
    method: "POST",
    body,
    headers: { "Content-Type": "application/json", "Content-Length": String(body.length) },
  });
  assert.equal(JSON.parse(both.heard[0]!.body).token, value);
  await both.call({
    method: "POST",
    body: `a=${placeholder}&b=1`,
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
  });
  assert.equal(new URLSearchParams(both.heard[1]!.body).get("a"), value);
  await both.call({
    method: "POST",
    body: `${"y".repeat(70_000)}${placeholder}`,
    headers: { "Transfer-Encoding": "chunked" },
  });
  assert.equal(both.heard[2]!.body, `${"y".repeat(70_000)}${value}`);
});

test("what belongs to another host is stripped from headers, path and body, and reported", async () => {
  using both = await between([secret(), others]);
  await both.call({
    method: "POST",
    path: `/?t=${foreign}`,
    headers: { "X-Key": foreign },
    body: `b=${foreign}`,
  });
  const [{ url, headers, body }] = both.heard as [(typeof both.heard)[0]];
  assert.ok(![url, body, JSON.stringify(headers)].some((text) => text.includes(foreign)));
  assert.deepEqual(both.reported, [["secret.stripped", { secret: "OTHER", name, port: both.port }]]);
});

test("Host and server name must be the judged one, and a request must have one meaning", async () => {
  using both = await between([secret()]);
  const answer = await both.call({ headers: { Host: "evil.test", Authorization: `Bearer ${placeholder}` } });
  assert.equal(answer.status, 421);
  assert.equal(both.heard.length, 0);
  assert.deepEqual(both.refused, ["host header"]);
  using other = await between([secret()], { sni: "evil.test" });
  await assert.rejects(other.call({}));
  assert.equal(other.heard.length, 0);
  using smuggling = await between([secret()]);
  await smuggling.call({ method: "POST", headers: { "Content-Length": "0" } });
  smuggling.secure.write(
    `POST / HTTP/1.1\r\nHost: ${name}:${smuggling.port}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  );
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(smuggling.heard.length, 1);
  assert.deepEqual(smuggling.refused, []);
});

test("a host whose certificate nobody vouches for gets nothing", async () => {
  using both = await between([secret()], { trusts: false });
  const answer = await both.call({ headers: { Authorization: `Bearer ${placeholder}` } });
  assert.equal(answer.status, 502);
  assert.equal(both.heard.length, 0);
  assert.ok(!answer.body.includes(real));
  assert.deepEqual(both.failed, [`no TLS with ${name}: SELF_SIGNED_CERT_IN_CHAIN`]);
});

test("many requests share a connection, large answers pass whole", async () => {
  using both = await between([secret()]);
  const big = "z".repeat(3_000_000);
  for (let n = 0; n < 3; n++) {
    const { body } = await both.call({ method: "PUT", body: big });
    assert.equal(JSON.parse(body).body.length, big.length);
  }
});

test("an answer that is compressed against the request is looked through all the same", async () => {
  using both = await between([secret()]);
  const encodings: Record<string, (bytes: Buffer) => Buffer> = {
    gzip: gzipSync,
    br: brotliCompressSync,
    deflate: deflateSync,
    zstd: zstdCompressSync,
    compress: (bytes) => bytes,
  };
  both.server.removeAllListeners("request");
  both.server.on("request", (message: IncomingMessage, response: ServerResponse) => {
    const encoding = message.url!.slice(1);
    assert.equal(message.headers["accept-encoding"], "identity");
    const body = encodings[encoding]!(Buffer.from(`echo ${message.headers["x-key"]} end`));
    response.writeHead(200, { "Content-Encoding": encoding, "Content-Length": body.length });
    response.end(body);
  });
  for (const encoding of ["gzip", "br", "deflate", "zstd"]) {
    const { body, headers } = await both.call({ path: `/${encoding}`, headers: { "X-Key": placeholder } });
    assert.match(body, /^echo ghp_Placeholder.* end$/, encoding);
    assert.equal(headers["content-encoding"], undefined);
  }
  assert.equal((await both.call({ path: "/compress", headers: { "X-Key": placeholder } })).status, 502);
});

test("a WebSocket gets its secret with its first request, and carries bytes both ways", async () => {
  using both = await between([secret()]);
  both.server.on("upgrade", (message: IncomingMessage, socket: Duplex) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Echo: ${message.headers.authorization}\r\n\r\n`,
    );
    socket.on("data", (data) => socket.write(`${data} for ${message.headers.authorization}`));
  });
  both.secure.write(
    `GET /ws HTTP/1.1\r\nHost: ${name}:${both.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer ${placeholder}\r\n\r\n`,
  );
  let heard = "";
  both.secure.on("data", (data) => {
    heard += data;
  });
  while (!heard.includes("\r\n\r\n")) await new Promise((resolve) => setTimeout(resolve, 5));
  both.secure.write("hello");
  while (!heard.includes("hello for Bearer ghp_")) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(heard.startsWith("HTTP/1.1 101"));
  assert.ok(!heard.includes(real), heard);
});

test("over plain HTTP a secret is put in only where its rule names the port", () => {
  const record = Authority.make("one sandbox");
  const told: string[] = [];
  const make = (covers: GrantedSecret["covers"]) =>
    new SecretInterceptor(new Injector([secret({ covers })]), new Authority(record), []);
  const rewrite = (covers: GrantedSecret["covers"]) =>
    make(covers).rewrite(name, 80, [["X-Key", placeholder]], (type) => void told.push(type));
  assert.deepEqual(
    rewrite((_name, _port, tls) => tls),
    [["X-Key", ""]],
  );
  assert.deepEqual(
    rewrite(() => true),
    [["X-Key", real]],
  );
  assert.deepEqual(told, ["secret.stripped", "secret.used"]);
});
