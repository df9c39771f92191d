// The watch against Node's own parser, strict and lenient: whatever bytes it lets through, nobody who reads them finds a request that
// names another host. Cases are made at random, from pieces that parsers are known to disagree about.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { Random } from "../../link/testing/random.ts";
import { RequestWatch } from "./request-watch.ts";

const cases = 1500;

const own = "good.test";
const hidden = "GET /hidden HTTP/1.1\r\nHost: evil.test\r\n\r\n";
const lineEnds = ["\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n", "\0\r\n", "\r\n "];
const requestLines = [
  "GET / HTTP/1.1",
  "POST /a HTTP/1.1",
  "PUT /a?b HTTP/1.0",
  "GET http://evil.test/ HTTP/1.1",
  "GET / HTTP/1.1 ",
  "GET  / HTTP/1.1",
  "GET /\t HTTP/1.1",
  "GET / HTTP/2.0",
  "get / HTTP/1.1",
  "CONNECT evil.test:443 HTTP/1.1",
  "OPTIONS * HTTP/1.1",
  "GET /",
];
const headers = [
  "Content-Length: 5",
  "Content-Length: 0",
  `Content-Length: ${hidden.length}`,
  "Content-Length: +5",
  "Content-Length: 0x5",
  "Content-Length: 5, 5",
  "Content-Length : 5",
  "Content-Length:5\t",
  "Content-Length: 05",
  "Content-Length:",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: Chunked",
  "Transfer-Encoding:\tchunked",
  "Transfer-Encoding : chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding: chunked, identity",
  "Transfer-Encoding: xchunked",
  "Transfer-Encoding: ,chunked",
  "Transfer-Encoding\0: chunked",
  " Transfer-Encoding: chunked",
  "Host: evil.test",
  "host:evil.test",
  "Host : evil.test",
  "Connection: close",
  "Connection: keep-alive, Host",
  "Expect: 100-continue",
  "Upgrade: websocket",
  "Upgrade: h2c",
  "X: y\r\n folded",
  "X: \x80\xff",
  "X:y:z",
  ": no name",
  "no colon",
  "",
];
const bodies = [
  "",
  "hello",
  hidden,
  `5\r\nhello\r\n0\r\n\r\n`,
  `5;ext=1\r\nhello\r\n0\r\n\r\n`,
  `5\nhello\n0\n\n`,
  `0\r\n\r\n`,
  `0\r\nX: trailer\r\n\r\n`,
  `00000000000000005\r\nhello\r\n0\r\n\r\n`,
  `5 \r\nhello\r\n0\r\n\r\n`,
  `-1\r\nhello\r\n0\r\n\r\n`,
  `ffffffff\r\n`,
  `5\r\nhelloXX0\r\n\r\n`,
  `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`,
  `5\r\nhello\r\n0\r\n\r\n${hidden}`,
];

function make(random: Random): Buffer {
  const usually = <T>(usual: T, list: readonly T[]): T => (random.int(0, 3) > 0 ? usual : random.pick(list));
  let text = "";
  for (let requests = 1 + random.int(0, 2); requests > 0; requests--) {
    const end = () => usually("\r\n", lineEnds);
    text += usually("POST / HTTP/1.1", requestLines) + end();
    const list = [`Host: ${own}`, ...Array.from({ length: random.int(0, 2) }, () => random.pick(headers))];
    if (random.int(0, 11) === 0) list.shift();
    if (random.int(0, 2) === 0) list.reverse();
    for (const header of list) text += header + end();
    text += end() + random.pick(bodies);
  }
  return Buffer.from(text, "latin1");
}

/** What the watch lets through, given the bytes in pieces. */
function passed(bytes: Buffer, random: Random): Buffer {
  const watch = new RequestWatch(own, 80);
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const next = Math.min(bytes.length, at + 1 + random.int(0, bytes.length - 1));
    const { pass, stop } = watch.feed(Buffer.from(bytes.subarray(at, next)));
    parts.push(Buffer.from(pass));
    at = next;
    if (stop !== undefined) break;
  }
  return Buffer.concat(parts);
}

/** The hosts of all requests that a server finds in these bytes. */
async function hostsFoundBy(server: Server, bytes: Buffer): Promise<(string | undefined)[]> {
  const [program, served] = duplexPair();
  const hosts: (string | undefined)[] = [];
  const found = Symbol.for("found");
  Object.assign(served, { [found]: hosts });
  program.on("error", () => {});
  program.resume();
  const over = new Promise((resolve) => served.once("close", resolve));
  server.emit("connection", served);
  program.end(bytes);
  await over;
  return hosts;
}

function reader(lenient: boolean): Server {
  const note = (message: { socket: object; headers: { host?: string | undefined } }) =>
    (message.socket as Record<symbol, (string | undefined)[]>)[Symbol.for("found")]!.push(
      message.headers.host,
    );
  const server = createServer({ insecureHTTPParser: lenient, requireHostHeader: false, keepAliveTimeout: 0 });
  server.on("request", (message, response) => {
    note(message);
    message.resume();
    response.end();
  });
  server.on("checkContinue", (message, response) => {
    note(message);
    message.resume();
    response.end();
  });
  for (const event of ["upgrade", "connect"] as const)
    server.on(event, (message, socket) => {
      note(message);
      socket.destroy();
    });
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}

test("no reader finds a request to another host in what was let through", { timeout: 60_000 }, async () => {
  const readers = [reader(false), reader(true)];
  let letThrough = 0;
  for (let seed = 1; seed <= cases; seed++) {
    const random = new Random(seed);
    const bytes = make(random);
    const through = passed(bytes, random);
    if (through.length === 0) continue;
    letThrough += 1;
    for (const server of readers) {
      const hosts = await hostsFoundBy(server, through);
      assert.ok(
        hosts.every((host) => host === own),
        `seed ${seed}: ${JSON.stringify(through.toString("latin1"))} has ${JSON.stringify(hosts)}`,
      );
    }
  }
  // Else nothing was tried.
  assert.ok(letThrough > cases / 10, `only ${letThrough} were let through`);
});
