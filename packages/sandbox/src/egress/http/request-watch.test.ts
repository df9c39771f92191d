import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestWatch } from "./request-watch.ts";

/** What passes of a text that comes in pieces of a size, and why it stops. */
function passed(text: string, size = text.length): { pass: string; stop: unknown } {
  const watch = new RequestWatch("a.example", 80);
  let pass = "";
  for (let at = 0; at < text.length; at += size) {
    const result = watch.feed(Buffer.from(text.slice(at, at + size), "latin1"));
    pass += result.pass.toString("latin1");
    if (result.stop) return { pass, stop: typeof result.stop === "string" ? result.stop : result.stop.rule };
  }
  return { pass, stop: undefined };
}

const get = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const post =
  "POST / HTTP/1.1\r\nHost: A.example:80\r\nContent-Length: 41\r\n\r\nGET / HTTP/1.1\r\nHost: other.example\r\n\r\n..";
const chunked =
  "POST / HTTP/1.1\r\nhost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1F\r\n0123456789012345678901234567890\r\n0\r\n\r\n";

test("requests of the plainest form pass unchanged, however they are cut", () => {
  const all = get + post + chunked + get;
  for (const size of [1, 2, 7, 50, all.length])
    assert.deepEqual(passed(all, size), { pass: all, stop: undefined });
});

test("a request to another host is held back, and what came before it passes", () => {
  for (const before of ["", get, chunked, get + post]) {
    for (const size of [1, 1000]) {
      const { pass, stop } = passed(`${before}GET / HTTP/1.1\r\nHost: other.example\r\n\r\n`, size);
      assert.deepEqual({ pass, stop }, { pass: before, stop: "host header" });
    }
  }
});

test("what could be read in two ways is held back", () => {
  const ambiguous = [
    "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
  ];
  for (const text of ambiguous) {
    const { pass, stop } = passed(text);
    assert.equal(pass, "");
    // Some of them are no HTTP for Node already.
    assert.ok(stop === "ambiguous request" || stop === "odd", `${text}: ${stop}`);
  }
  const odd = [
    "GET / HTTP/1.1\r\nHost: a.example\r\n folded\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a.example\r\n\r\n",
    "GET / HTTP/1.1\nHost: a.example\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nX: a\rb\r\n\r\n",
    "GET http://other.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "get / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "GET / HTTP/2.0\r\nHost: a.example\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "CONNECT other.example:80 HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n\r\n",
    "\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    `GET / HTTP/1.1\r\nHost: a.example\r\nX: ${"a".repeat(70_000)}\r\n\r\n`,
  ];
  for (const text of odd) assert.deepEqual(passed(text), { pass: "", stop: "odd" }, text.slice(0, 80));
});

test("chunks pass as Node's parser reads them, and what it refuses is held back", () => {
  const head = "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const body of ["5;x=y\r\nhello\r\n0\r\n\r\n", "a\r\n0\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"])
    for (const size of [1, 3, 1000])
      assert.deepEqual(passed(head + body + get, size), { pass: head + body + get, stop: undefined }, body);
  const trailer = `${head}0\r\nX: trailer\r\n\r\n`;
  assert.deepEqual(passed(trailer), { pass: trailer, stop: undefined });
  for (const more of ["G", "GET / HTTP/1.1\r\nHost: other.example\r\n", get])
    assert.deepEqual(passed(trailer + more), { pass: head, stop: "odd" }, more);
  for (const body of ["+5\r\nhello\r\n", "0x5\r\nhello\r\n", "5 \r\nhello\r\n", "5;x\nhello\r\n"])
    assert.deepEqual(passed(head + body), { pass: head, stop: "odd" }, body);
  assert.deepEqual(passed(`${head}1\r\naXX0\r\n\r\n`), { pass: head, stop: "odd" });
});

test("a flood without a pause ends the connection and nothing else", () => {
  const watch = new RequestWatch("a.example", 80);
  const piece = Buffer.from(get.repeat(7000));
  let rounds = 0;
  while (!watch.feed(piece).stop && rounds < 100) rounds++;
  assert.ok(rounds > 0 && rounds < 100, String(rounds));
  assert.equal(passed(get).stop, undefined);
});

test("after a request that says it is the last one nothing passes", async () => {
  const last = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
  assert.deepEqual(passed(last + get), { pass: last, stop: "odd" });
  const watch = new RequestWatch("a.example", 80);
  watch.feed(Buffer.from(last));
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(watch.feed(Buffer.from(get)).stop, "odd");
});

test("as many requests as fit into a piece pass, piece after piece, and then none", async () => {
  const watch = new RequestWatch("a.example", 80);
  for (const count of [1, 100, 7000, 7000, 1]) {
    assert.equal(watch.feed(Buffer.from(get.repeat(count))).pass.length, get.length * count);
    await new Promise((resolve) => setImmediate(resolve));
  }
  watch.close();
  assert.equal(watch.feed(Buffer.from(get)).stop, "odd");
});
