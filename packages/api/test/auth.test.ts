import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError, EventService, ProcessService, SystemService } from "@caisson/contract";
import { ErrorInfoSchema, fromDetails } from "@caisson/contract/status";
import { ConnectError, createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { secrets } from "./fakes.ts";
import { send } from "./http-client.ts";
import { sandbox } from "./samples.ts";
import { startServer } from "./server.ts";

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

test("without a key only what is public is served", async () => {
  await using server = await startServer();
  assert.equal((await send(server.port, "/v1/health")).status, 200);
  assert.equal((await send(server.port, "/v1/capabilities")).status, 200);
  for (const path of ["/v1/sandboxes", "/v1/events", "/v1/config", "/v1/keys"]) {
    const answer = await send(server.port, path);
    assert.deepEqual([answer.status, answer.code], [401, "UNAUTHENTICATED"], path);
    assert.equal(answer.headers["www-authenticate"], "Bearer");
  }
});

test("a key opens what its scopes name and nothing else", async () => {
  await using server = await startServer();
  assert.equal((await send(server.port, "/v1/sandboxes", { headers: bearer(secrets.read) })).status, 200);
  const write = await send(server.port, `/v1/sandboxes/${sandbox.id}`, {
    method: "DELETE",
    headers: bearer(secrets.read),
  });
  assert.deepEqual([write.status, write.code], [403, "FORBIDDEN"]);
  assert.match(write.body, /scope write/);
  assert.deepEqual(server.watched.ended, []);
  assert.equal((await send(server.port, "/v1/keys", { headers: bearer(secrets.read) })).code, "FORBIDDEN");
  assert.equal((await send(server.port, "/v1/keys", { headers: bearer(secrets.all) })).status, 200);
});

test("a bad key is refused even where none is needed", async () => {
  await using server = await startServer();
  for (const authorization of [
    "Bearer csn_wrong",
    "Bearer ",
    "Basic YTpi",
    "Bearer a b",
    "csn_all",
    "Bearer eyJh.e30.",
  ]) {
    const answer = await send(server.port, "/v1/health", { headers: { authorization } });
    assert.equal(answer.code, "UNAUTHENTICATED", authorization);
  }
});

test("a body is not read before its sender is known", async () => {
  await using server = await startServer();
  const body = Buffer.alloc(3_000_000);
  const path = `/v1/sandboxes/${sandbox.id}/files/content?path=f`;
  const answer = await send(server.port, path, {
    method: "PUT",
    body,
    headers: { expect: "100-continue" },
  }).catch(() => undefined);
  assert.ok(answer === undefined || answer.status === 401);
  assert.deepEqual(server.watched.uploads, []);
});

test("a refusal has its code and next step on gRPC, gRPC-Web and Connect, unary and streaming", async () => {
  await using server = await startServer();
  const baseUrl = server.url;
  const transports = [
    createGrpcTransport({ baseUrl }),
    createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    createConnectTransport({ baseUrl, httpVersion: "1.1" }),
    createConnectTransport({ baseUrl, httpVersion: "2" }),
  ];
  for (const transport of transports) {
    const calls = [
      () => createClient(SystemService, transport).getUsage({}),
      async () => {
        for await (const _ of createClient(EventService, transport).subscribeEvents({})) return;
      },
      () =>
        createClient(ProcessService, transport).getProcess(
          { sandboxId: "sb_none" },
          { headers: bearer(secrets.all) },
        ),
    ];
    const codes = await Promise.all(calls.map((call) => call().then(() => "none", codeOf)));
    assert.deepEqual(codes, ["UNAUTHENTICATED", "UNAUTHENTICATED", "INVALID_INPUT"]);
  }
});

function codeOf(thrown: unknown): string {
  assert.ok(thrown instanceof ConnectError, String(thrown));
  const error = fromDetails(thrown.code, thrown.rawMessage, thrown.findDetails(ErrorInfoSchema));
  assert.ok(
    error instanceof CaissonError &&
      error.metadata.next_step !== undefined &&
      error.metadata.request_id !== undefined,
  );
  return error.code;
}

test("requests under a foreign name or from a foreign origin are refused", async (t) => {
  await using server = await startServer({
    network: { allowedHosts: ["caisson.example"], allowedOrigins: ["https://ui.example"] },
  });
  const { port } = server;
  const cases: [headers: Record<string, string>, status: number][] = [
    [{ host: `127.0.0.1:${port}` }, 200],
    [{ host: "localhost" }, 200],
    [{ host: "LOCALHOST.:80" }, 200],
    [{ host: "[::1]:80" }, 200],
    [{ host: "caisson.example" }, 200],
    [{ host: "evil.example" }, 403],
    [{ host: "caisson.example.evil.example" }, 403],
    [{ host: "127.0.0.1.evil.example" }, 403],
    [{ host: "localhost@evil.example" }, 403],
    [{ host: "2130706433" }, 403],
    [{ host: "127.1" }, 403],
    [{ origin: "https://evil.example" }, 403],
    [{ origin: "null" }, 403],
    [{ origin: "http://localhost:1" }, 403],
    [{ origin: "https://ui.example.evil.example" }, 403],
    [{ origin: "https://ui.example" }, 200],
    [{ origin: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}` }, 200],
    [{ "sec-fetch-site": "cross-site" }, 403],
    [{ "sec-fetch-site": "same-origin" }, 200],
  ];
  for (const [headers, status] of cases) {
    await t.test(JSON.stringify(headers), async () => {
      const answer = await send(port, "/v1/sandboxes", { headers: { ...bearer(secrets.all), ...headers } });
      assert.equal(answer.status, status, answer.body);
      if (status === 403) assert.equal(answer.code, "FOREIGN_ORIGIN");
      const page = await send(port, "/caisson.v1.SystemService/GetHealth", {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: "{}",
      });
      assert.equal(page.status, status, "the same for Connect");
    });
  }
});

test("an allowed page may ask first and read the answer; another may not", async () => {
  await using server = await startServer({ network: { allowedOrigins: ["https://ui.example"] } });
  const asked = await send(server.port, "/v1/run", {
    method: "OPTIONS",
    headers: { origin: "https://ui.example" },
  });
  assert.equal(asked.status, 204);
  assert.equal(asked.headers["access-control-allow-origin"], "https://ui.example");
  const other = await send(server.port, "/v1/run", {
    method: "OPTIONS",
    headers: { origin: "https://evil.example" },
  });
  assert.equal(other.status, 403);
  assert.equal(other.headers["access-control-allow-origin"], undefined);
});

test("a caller that calls too often is told so, and others are not affected", async () => {
  await using server = await startServer({ network: { requestsPerSecond: 5 } });
  const codes = await Promise.all(
    Array.from({ length: 30 }, () =>
      send(server.port, "/v1/sandboxes", { headers: bearer(secrets.read) }).then(({ status }) => status),
    ),
  );
  assert.ok(codes.includes(429) && codes.includes(200));
  assert.equal((await send(server.port, "/v1/sandboxes", { headers: bearer(secrets.all) })).status, 200);
});

test("the socket's owner needs no key, whatever protocol", async () => {
  await using server = await startServer();
  const { request } = await import("node:http");
  const status = await new Promise((resolve) =>
    request({ socketPath: server.socket, path: "/v1/keys" }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).end(),
  );
  assert.equal(status, 200);
});
