import assert from "node:assert/strict";
import { test } from "node:test";
import { FirstLine } from "./first-line.ts";
import { listen, makeRig, readAll, readUntil } from "./testing/rig.ts";

/** What is known after each piece of a text. */
const known = (...pieces: string[]) => {
  const line = new FirstLine();
  return pieces.map((piece) => line.feed(Buffer.from(piece, "latin1"))).at(-1);
};

test("a first line that names a version of HTTP is HTTP, whatever its method and however it is cut", () => {
  for (const text of ["GET / HTTP/1.1\r\n", "\r\n\nfoo\t/ http/1.0\n", `X ${"y".repeat(9000)} HTTP/1.1\n`]) {
    assert.equal(known(text), "http");
    assert.equal(known(...text), "http");
  }
});

test("other lines are not, and nothing is known before the line's end", () => {
  for (const text of ["get key\r\n", "SSH-2.0-OpenSSH\r\n", "PRI * HTTP/2.0\r\n", "a\nHTTP/1.1\n"])
    assert.equal(known(text), "other");
  for (const text of ["", "\r\n", "GET / HTTP/1.1", "a"]) assert.equal(known(text), "more");
});

for (const [what, pieces] of [
  ["a method that nobody knows", ["FOO / HTTP/1.1\r\nHost: evil.example\r\n\r\n"]],
  ["tabs between its parts", ["GET\t/\tHTTP/1.1\r\nHost: evil.example\r\n\r\n"]],
  ["letters that come one by one", [..."FOO / HTTP/1.1\r\nHost: evil.example\r\n\r\n"]],
] as const)
  test(`a request to another host does not pass by ${what}`, async () => {
    await using rig = await makeRig({ allow: ["allowed.example", "127.0.0.1"] });
    rig.names.set("allowed.example", ["127.0.0.1"]);
    let heard = "";
    const server = await listen((socket) => socket.on("data", (data) => (heard += data.toString("latin1"))));
    const program = rig.connect("transparent", "allowed.example", server.port);
    for (const piece of pieces) {
      program.write(piece, "latin1");
      await new Promise((resolve) => setImmediate(resolve));
    }
    await readAll(program);
    assert.doesNotMatch(heard, /\n/);
    assert.match(String(rig.told("network.refused")[0]?.rule), /host header|malformed request/);
    server.close();
  });

test("protocols of lines and of single letters pass, also where they look like the beginning of a method", async () => {
  await using rig = await makeRig({ allow: ["allowed.example", "127.0.0.1"] });
  rig.names.set("allowed.example", ["127.0.0.1"]);
  const echo = await listen((socket) => socket.pipe(socket));
  for (const text of ["get key\r\n", "a", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]) {
    const program = rig.connect("transparent", "allowed.example", echo.port);
    program.write(text);
    assert.equal(await readUntil(program, new RegExp(`${text.at(-1)}$`)), text);
    program.destroy();
  }
  echo.close();
});
