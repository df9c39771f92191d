import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { rules } from "@caisson/contract";
import { secrets } from "./fakes.ts";
import { type Sent, send, sendRaw } from "./http-client.ts";
import { parseEvents } from "./rest-client.ts";
import { sandbox } from "./samples.ts";
import { startServer } from "./server.ts";

const authorized = { authorization: `Bearer ${secrets.all}` };
const json = { ...authorized, "content-type": "application/json" };
const box = `/v1/sandboxes/${sandbox.id}`;
const post = (body: string | Uint8Array, headers: Record<string, string> = json): Sent => ({
  method: "POST",
  headers,
  body,
});

async function until(condition: () => boolean): Promise<void> {
  for (let waited = 0; !condition(); waited += 5) {
    assert.ok(waited < 10_000, "it never happened");
    await sleep(5);
  }
}

test("plain curl can run a command and read its result", async () => {
  await using server = await startServer();
  const answer = await send(server.port, "/v1/run", post('{"command":{"argv":["x"],"stdin":"text"}}'));
  assert.equal(answer.status, 200);
  const result = JSON.parse(answer.body);
  assert.equal(result.exit.code, 3);
  assert.equal(result.exit.duration_ms, 1.25);
  assert.deepEqual(result.stderr, { bytes: "//4AAQ==" });
});

test("plain curl can stream a command: one event per field of the oneof, numbered", async () => {
  await using server = await startServer();
  const answer = await send(server.port, "/v1/run/stream", post('{"command":{"argv":["x"]}}'));
  assert.equal(answer.headers["content-type"], "text/event-stream");
  const events = parseEvents(answer.body);
  assert.deepEqual(
    events.map(({ event, id }) => `${id} ${event}`),
    ["0 started", "5 stdout", "9 stderr", "9 exit"],
  );
  assert.equal((events[3]!.data as { code: number }).code, 3);
});

test("the first event reaches the client while the command runs", async () => {
  await using server = await startServer();
  const first = await new Promise<string>((resolve) => {
    const options = { port: server.port, path: "/v1/run/stream", method: "POST", headers: json };
    const request = httpRequest(options, (response) =>
      response.once("data", (chunk) => {
        resolve(String(chunk));
        request.destroy();
      }),
    );
    request.on("error", () => {});
    request.end('{"command":{"argv":["forever"]}}');
  });
  assert.match(first, /^id: 0\nevent: started\n/);
  await until(() => server.watched.aborted === 1);
  await until(() => server.watched.ended.length === 1);
});

test("a run that was given a key outlives its caller", async () => {
  await using server = await startServer();
  await new Promise<void>((resolve) => {
    const headers = { ...json, "idempotency-key": "k-1" };
    const request = httpRequest(
      { port: server.port, path: "/v1/run/stream", method: "POST", headers },
      (response) =>
        response.once("data", () => {
          request.destroy();
          resolve();
        }),
    );
    request.on("error", () => {});
    request.end('{"command":{"argv":["forever"]}}');
  });
  await until(() => server.watched.aborted === 1);
  await sleep(20);
  assert.deepEqual(server.watched.ended, []);
});

test("a stream resumes after Last-Event-ID", async () => {
  await using server = await startServer();
  const path = `${box}/processes/p1/events?from=0`;
  const answer = await send(server.port, path, { headers: { ...authorized, "last-event-id": "5" } });
  assert.deepEqual(
    parseEvents(answer.body).map(({ event }) => event),
    ["stderr", "exit"],
  );
  const bad = await send(server.port, path, { headers: { ...authorized, "last-event-id": "5; x" } });
  assert.equal(bad.code, "INVALID_INPUT");
});

test("an error before the first event keeps its status", async () => {
  await using server = await startServer();
  const answer = await send(server.port, "/v1/sandboxes/sb_none/processes/p1/events", {
    headers: authorized,
  });
  assert.equal(answer.status, 404);
  assert.equal(answer.code, "SANDBOX_NOT_FOUND");
});

test("a file is its bytes, with its length and etag", async () => {
  await using server = await startServer();
  const answer = await send(server.port, `${box}/files/content?path=f`, { headers: authorized });
  assert.equal(answer.body, "hello world");
  assert.equal(answer.headers["content-length"], "11");
  assert.equal(answer.headers.etag, '"e1"');
  const body = Buffer.alloc(3_000_000, 1);
  const written = await send(server.port, `${box}/files/content?path=f&mode=384`, {
    method: "PUT",
    headers: authorized,
    body,
  });
  assert.equal(JSON.parse(written.body).info.size, "3000000");
  assert.ok(server.watched.uploads[0]?.equals(body));
});

test("bad input gets a clear refusal", async (t) => {
  await using server = await startServer();
  const exec = `${box}:exec`;
  const run = (body: string | Uint8Array, headers?: Record<string, string>) =>
    send(server.port, "/v1/run", post(body, headers));
  const cases: [
    name: string,
    status: number,
    code: string,
    answer: Promise<{ status: number; code: string; body: string }>,
  ][] = [
    ["an unknown field", 400, "INVALID_INPUT", run('{"comand":{}}')],
    ["a wrong type", 400, "INVALID_INPUT", run('{"command":{"argv":"ls"}}')],
    ["no command", 400, "INVALID_INPUT", run("{}")],
    ["no body", 400, "INVALID_INPUT", run("")],
    ["NUL in an argument", 400, "INVALID_INPUT", run('{"command":{"argv":["a\\u0000b"]}}')],
    ["a lone surrogate", 400, "INVALID_INPUT", run('{"command":{"argv":["\\ud800"]}}')],
    ["bad UTF-8", 400, "INVALID_INPUT", run(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]))],
    ["torn JSON", 400, "INVALID_INPUT", run('{"command":')],
    ["a list", 400, "INVALID_INPUT", run("[]")],
    ["deep JSON", 400, "INVALID_INPUT", run(`{"spec":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}`)],
    ["__proto__", 400, "INVALID_INPUT", run('{"__proto__":{"command":{"argv":["x"]}}}')],
    ["__proto__ in a map", 400, "INVALID_INPUT", run('{"command":{"argv":["x"],"env":{"__proto__":"x"}}}')],
    ["text/plain", 400, "INVALID_INPUT", run("{}", { ...authorized, "content-type": "text/plain" })],
    [
      "a form",
      400,
      "INVALID_INPUT",
      run("a=b", { ...authorized, "content-type": "application/x-www-form-urlencoded" }),
    ],
    ["a compressed body", 400, "INVALID_INPUT", run("{}", { ...json, "content-encoding": "gzip" })],
    ["an oversize body", 413, "TOO_LARGE", run(Buffer.alloc(rules.sizes.request_body_bytes + 1, 32))],
    [
      "a key that differs",
      400,
      "INVALID_INPUT",
      run('{"idempotency_key":"a"}', { ...json, "idempotency-key": "b" }),
    ],
    ["a strange key", 400, "INVALID_INPUT", run('{"idempotency_key":"a b","command":{"argv":["x"]}}')],
    ["two sandboxes", 400, "INVALID_INPUT", send(server.port, exec, post('{"sandbox_id":"sb_other"}'))],
    [
      "too many on a page",
      400,
      "INVALID_INPUT",
      send(server.port, "/v1/sandboxes?page_size=1001", { headers: authorized }),
    ],
    [
      "an unknown parameter",
      400,
      "INVALID_INPUT",
      send(server.port, "/v1/sandboxes?nope=1", { headers: authorized }),
    ],
    [
      "a parameter twice",
      400,
      "INVALID_INPUT",
      send(server.port, "/v1/sandboxes?all=1&all=0", { headers: authorized }),
    ],
    [
      "a parameter that is no number",
      400,
      "INVALID_INPUT",
      send(server.port, "/v1/sandboxes?page_size=x", { headers: authorized }),
    ],
    [
      "bad percent-encoding",
      400,
      "INVALID_INPUT",
      send(server.port, "/v1/sandboxes?page_token=%ff", { headers: authorized }),
    ],
    [
      "a set-uid mode",
      400,
      "INVALID_INPUT",
      send(server.port, `${box}/files/content?path=f&mode=2541`, {
        method: "PUT",
        headers: authorized,
        body: "x",
      }),
    ],
    [
      "a body on GET",
      400,
      "INVALID_INPUT",
      send(server.port, "/v1/sandboxes", { headers: { ...json, "content-length": "2" }, body: "{}" }),
    ],
    ["an unknown path", 404, "NOT_FOUND", send(server.port, "/v1/nope", { headers: authorized })],
    [
      "a method that is not served",
      404,
      "NOT_FOUND",
      send(server.port, "/v1/sandboxes", { method: "PATCH", headers: authorized }),
    ],
    [
      "encoded traversal",
      404,
      "NOT_FOUND",
      send(server.port, "/v1/sandboxes/%2e%2e", { headers: authorized }),
    ],
    ["an encoded slash", 404, "NOT_FOUND", send(server.port, "/v1/sandboxes/a%2fb", { headers: authorized })],
    [
      "double encoding",
      404,
      "SANDBOX_NOT_FOUND",
      send(server.port, "/v1/sandboxes/%252e%252e", { headers: authorized }),
    ],
    ["a backslash", 404, "NOT_FOUND", send(server.port, "/v1/sandboxes/..%5c..", { headers: authorized })],
    [
      "fullwidth dots",
      404,
      "SANDBOX_NOT_FOUND",
      send(server.port, "/v1/sandboxes/%EF%BC%8E%EF%BC%8E", { headers: authorized }),
    ],
    ["NUL in the path", 404, "NOT_FOUND", send(server.port, "/v1/sandboxes/a%00b", { headers: authorized })],
  ];
  for (const [name, status, code, answer] of cases) {
    await t.test(name, async () => {
      const { status: gotStatus, code: gotCode, body } = await answer;
      assert.deepEqual([gotStatus, gotCode], [status, code], body);
      assert.ok(Buffer.byteLength(body) <= rules.sizes.error_body_bytes, "the body is short");
      assert.doesNotMatch(body, /\.ts|node_modules|at [A-Z]/, "no stack and no path of the host");
      assert.match(body, /"request_id":"[0-9a-f-]{36}"/);
    });
  }
});

test("an error's body stays short whatever was sent, and carries nothing that a terminal acts upon", async () => {
  await using server = await startServer();
  const name = "\u001b]52;c;x\u0007\r\nSet-Cookie: a=b".repeat(300);
  const answer = await send(server.port, "/v1/run", post(JSON.stringify({ [name]: 1 })));
  assert.equal(answer.code, "INVALID_INPUT");
  assert.ok(Buffer.byteLength(answer.body) <= rules.sizes.error_body_bytes);
  assert.doesNotMatch(JSON.parse(answer.body).error.message, /[\u0000-\u001f]/);
  assert.equal(answer.headers["set-cookie"], undefined);
});

test("an oversize body without a declared length is cut while it comes", async () => {
  await using server = await startServer();
  const chunk = `10000\r\n${" ".repeat(65_536)}\r\n`;
  const head = `POST /v1/run HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${secrets.all}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  const answer = await sendRaw(server.port, head + chunk.repeat(80));
  assert.match(answer.toString(), /^HTTP\/1\.1 413 /);
});

test("what happened inside is not told", async () => {
  await using server = await startServer();
  const answer = await send(server.port, `${box}:exec`, post('{"command":{"argv":["crash"]}}'));
  assert.equal(answer.status, 500);
  assert.doesNotMatch(answer.body, /secret|home/);
  assert.equal(server.logged.length, 1);
});

test("the documents need no key and nothing from outside", async () => {
  await using server = await startServer();
  const openapi = await send(server.port, "/openapi.json");
  assert.equal(JSON.parse(openapi.body).openapi, "3.1.0");
  const docs = await send(server.port, "/docs");
  assert.equal(docs.status, 200);
  assert.doesNotMatch(docs.body, /<script|https?:\/\/|src=/);
  assert.match(docs.body, /\/v1\/run\/stream/);
});

test("a caller's own deadline ends the call, whatever the handler does", async () => {
  await using server = await startServer();
  const forever = '{"command":{"argv":["forever"]}}';
  const within = (ms: string) => post(forever, { ...json, "request-timeout-ms": ms });
  for (const [ms, status, code] of [
    ["50", 504, "DEADLINE_EXCEEDED"],
    ["0", 504, "DEADLINE_EXCEEDED"],
    ["soon", 400, "INVALID_INPUT"],
    ["-1", 400, "INVALID_INPUT"],
    ["99999999999", 400, "INVALID_INPUT"],
  ] as const) {
    const answer = await send(server.port, "/v1/run", within(ms));
    assert.equal(answer.status, status, ms);
    assert.equal(JSON.parse(answer.body).error.code, code, ms);
  }
  const streamed = await send(server.port, "/v1/run/stream", within("300"));
  assert.equal(
    (parseEvents(streamed.body).at(-1)!.data as { error: { code: string } }).error.code,
    "DEADLINE_EXCEEDED",
  );
  const unhurried = post('{"command":{"argv":["x"]}}', { ...json, "request-timeout-ms": "9999999999" });
  assert.equal((await send(server.port, "/v1/run", unhurried)).status, 200);
});
