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
  for (const text of ambiguous) assert.deepEqual(passed(text), { pass: "", stop: "ambiguous request" }, text);
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

test("chunks with extensions, trailers or sizes that are none are held back", () => {
  const head = "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const body of [
    "5;x=y\r\nhello\r\n",
    "+5\r\nhello\r\n",
    "0x5\r\nhello\r\n",
    "fffffffff\r\n",
    "0\r\nHost: other\r\n\r\n",
    "5 \r\nhello\r\n",
  ])
    assert.deepEqual(passed(head + body), { pass: head, stop: "odd" }, body);
  assert.deepEqual(passed(`${head}1\r\naXX0\r\n\r\n`), { pass: `${head}1\r\na`, stop: "odd" });
});
