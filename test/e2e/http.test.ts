// The network's side with plain curl: runs, streams, keys, pages.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import { startDaemon, type TestDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { ending, type Parsed } from "../support/launcher.ts";

interface ServerEvent {
  id: string;
  event: string;
  data: Parsed;
}

describe("HTTP with plain curl", { timeout: 120_000 }, () => {
  let daemon: TestDaemon;
  let client: Client;
  let url: string;
  before(async () => {
    daemon = await startDaemon({ env: { CAISSON_LISTEN_TCP: "127.0.0.1:0" } });
    client = await connect({ socket: daemon.socket });
    const found = await eventually(
      () => /"address":"(http:[^"]+)"/.exec(daemon.log()),
      (match) => match !== null,
    );
    url = found![1]!;
  });
  after(async () => {
    await client.close();
    await daemon[Symbol.asyncDispose]();
  });

  const start = (args: string[]) =>
    spawn("curl", ["-sS", "-N", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const curl = async (path: string, ...args: string[]) => {
    const said = await ending(start(["--unix-socket", daemon.socket, `http://localhost${path}`, ...args]));
    assert.equal(said.code, 0, said.err);
    return said.out;
  };
  const post = (path: string, body: unknown) =>
    curl(path, "-H", "content-type: application/json", "-d", JSON.stringify(body));
  const overTcp = async (path: string, ...args: string[]) => {
    const said = await ending(start(["-w", "\n%{http_code}", `${url}${path}`, ...args]));
    const at = said.out.lastIndexOf("\n");
    return { status: Number(said.out.slice(at + 1)), body: said.out.slice(0, at) };
  };

  it("runs a command and answers with its whole result", async () => {
    const result = JSON.parse(
      await post("/v1/run", { command: { argv: ["sh", "-c", "echo hi; echo no >&2; exit 3"] } }),
    );
    assert.equal(result.stdout.text, "hi\n");
    assert.equal(result.stderr.text, "no\n");
    assert.equal(result.exit.code, 3);
    assert.equal(typeof result.exit.duration_ms, "number");
    assert.ok(result.exit.enforced.mechanisms.length > 10);
  });

  it("takes input, and gives output that is not text as bytes", async () => {
    const result = JSON.parse(
      await post("/v1/run", { command: { argv: ["sh", "-c", "cat; printf '\\377'"], stdin: "in" } }),
    );
    assert.equal(result.stdout.text, undefined);
    assert.deepEqual(Buffer.from(result.stdout.bytes, "base64"), Buffer.from("in\xff", "latin1"));
  });

  it("streams events by name, the first while the command still runs", async () => {
    const body = JSON.stringify({ command: { argv: ["sh", "-c", "echo first; echo oops >&2; sleep 600"] } });
    const child = start([
      "--unix-socket",
      daemon.socket,
      "http://localhost/v1/run/stream",
      "-d",
      body,
      "-H",
      "content-type: application/json",
    ]);
    const closed = new Promise((resolve) => child.once("close", resolve));
    let text = "";
    child.stdout!.on("data", (data) => {
      text += data;
    });
    await eventually(
      () => text,
      (seen) => seen.includes('{"text":"oops'),
    );
    const events = parse(text);
    assert.deepEqual(
      events.map(({ event }) => event),
      ["started", "stdout", "stderr"],
    );
    const [started, stdout] = events;
    assert.equal(stdout!.data.text, "first\n");
    const { sandbox_id, id } = started!.data;
    await post(`/v1/sandboxes/${sandbox_id}/processes/${id}:signal`, { signal: "SIGTERM" });
    await closed;
    const last = parse(text).at(-1)!;
    assert.equal(last.event, "exit");
    assert.equal(last.data.signal, "SIGTERM");
  });

  it("goes on from Last-Event-ID without gap or repetition", async () => {
    await using box = await client.create();
    const run = await box.exec(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done"]);
    await run.exit;
    const path = `/v1/sandboxes/${box.id}/processes/${run.id}/events`;
    const whole = textOf(parse(await curl(path)));
    assert.equal(whole.length, 63);
    for (const from of [1, 14, 40]) {
      const events = parse(await curl(path, "-H", `Last-Event-ID: ${from}`));
      assert.equal(textOf(events), whole.slice(from));
      assert.equal(events.at(-1)!.event, "exit");
    }
  });

  it("asks for a key over TCP, and holds it to its scopes", async () => {
    assert.equal((await overTcp("/v1/sandboxes")).status, 401);
    assert.equal((await overTcp("/v1/sandboxes", "-H", "authorization: Bearer nonsense")).status, 401);
    const reader = await client.keys.create("reader", { scopes: ["read"] });
    const writer = await client.keys.create("writer", { scopes: ["read", "write"] });
    const as = (key: { secret: string }) => ["-H", `authorization: Bearer ${key.secret}`];
    const run = ["-H", "content-type: application/json", "-d", '{"command":{"argv":["echo","hi"]}}'];
    assert.equal((await overTcp("/v1/sandboxes", ...as(reader))).status, 200);
    const refused = await overTcp("/v1/run", ...as(reader), ...run);
    assert.equal(refused.status, 403);
    assert.equal(JSON.parse(refused.body).error.code, "FORBIDDEN");
    const ran = await overTcp("/v1/run", ...as(writer), ...run);
    assert.equal(JSON.parse(ran.body).stdout.text, "hi\n");
    assert.equal((await overTcp("/v1/keys", ...as(writer))).status, 403);
    await client.keys.revoke("writer");
    assert.equal((await overTcp("/v1/run", ...as(writer), ...run)).status, 401);
    await client.keys.revoke("reader");
  });

  it("refuses a foreign host and a foreign origin, with a key or without", async () => {
    const key = await client.keys.create("browser", { scopes: ["read"] });
    const bearer = ["-H", `authorization: Bearer ${key.secret}`];
    assert.equal((await overTcp("/v1/sandboxes", ...bearer, "-H", "Host: evil.example")).status, 403);
    assert.equal(
      (await overTcp("/v1/sandboxes", ...bearer, "-H", "Origin: http://evil.example")).status,
      403,
    );
    await client.keys.revoke("browser");
  });

  it("serves the SDK over HTTP with a key", async () => {
    const key = await client.keys.create("sdk");
    await using remote = await connect({ url, key: key.secret });
    assert.equal((await remote.run(["echo", "hi"])).stdout.text, "hi\n");
    await client.keys.revoke("sdk");
  });

  it("has metrics, a description and a page that needs nothing from outside", async () => {
    const metrics = await curl("/metrics");
    assert.match(metrics, /^caisson_\w+/m);
    assert.doesNotMatch(metrics, /sb_[a-z0-9]{16}/);
    const document = JSON.parse(await curl("/openapi.json"));
    assert.match(document.openapi, /^3\.1/);
    assert.ok(document.paths["/v1/run"].post);
    const page = await curl("/docs");
    assert.match(page, /<html/i);
    assert.doesNotMatch(page, /(src|href)="https?:/);
    assert.equal(await curl("/healthz"), "ok\n");
  });

  it("answers bad input with an error of the table, never with a stack or a path of the host", async () => {
    const bad = [
      ["/v1/run", "{"],
      ["/v1/run", '{"command":{"argv":"not a list"}}'],
      ["/v1/run", '{"nonsense":1}'],
      ["/v1/run", '{"command":{"argv":["true"],"timeout_ms":-1}}'],
      ["/v1/run", `${"[".repeat(5000)}`],
      ["/v1/run", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]).toString("latin1")],
    ];
    for (const [path, body] of bad) {
      const answer = await curl(path!, "-H", "content-type: application/json", "--data-binary", body!);
      const { error } = JSON.parse(answer);
      assert.equal(error.code, "INVALID_INPUT", answer);
      assert.ok(error.next_step && error.request_id, answer);
      assert.doesNotMatch(answer, /\bat \S+:\d+|node_modules|packages\//);
      assert.ok(Buffer.byteLength(answer) <= 512, answer);
    }
    assert.equal(JSON.parse(await curl("/v1/nonsense")).error.code, "NOT_FOUND");
    assert.equal(JSON.parse(await curl("/v1/sandboxes/sb_0000000000000000")).error.code, "SANDBOX_NOT_FOUND");
  });
});

function parse(text: string): ServerEvent[] {
  return text
    .split("\n\n")
    .filter((block) => /^event: /m.test(block) && /^data: /m.test(block))
    .map((block) => {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, "m").exec(block)?.[1] ?? "";
      return { id: field("id"), event: field("event"), data: JSON.parse(field("data")) };
    });
}

function textOf(events: ServerEvent[]): string {
  return events
    .filter(({ event }) => event === "stdout")
    .map(({ data }) => data.text)
    .join("");
}
