import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMethod, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { createInProcessTransport } from "@caisson/contract/in-process";
import type { Transport as ConnectTransport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { mergeMessages } from "../src/faces/rest/merge.ts";
import { createRestRoutes } from "../src/faces/rest/routes.ts";
import { secrets } from "./fakes.ts";
import { requests } from "./requests.ts";
import { RestClient } from "./rest-client.ts";
import { startServer } from "./server.ts";
import { TestClient } from "./ttrpc-client.ts";

type Call = (method: DescMethod, messages: readonly object[]) => Promise<Message[]>;

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

function viaConnect(transport: ConnectTransport): Call {
  const headers = { authorization: `Bearer ${secrets.all}` };
  return async (method, messages) => {
    if (method.methodKind === "unary") {
      const { message } = await transport.unary(
        method as never,
        undefined,
        undefined,
        headers,
        messages[0] as never,
      );
      return [message];
    }
    const { message } = await transport.stream(
      method as never,
      undefined,
      undefined,
      headers,
      each(messages as MessageInitShape<typeof method.input>[]),
    );
    return await Array.fromAsync(message as AsyncIterable<Message>);
  };
}

test("every method gives the same answer on every face", async (t) => {
  await using server = await startServer();
  const options = { baseUrl: server.url };
  const { services } = server.api;
  const local = createInProcessTransport(services, { actor: "uid:0", nextRequestId: () => "r" });
  const inProcess: Call = async (method, messages) =>
    method.methodKind === "unary"
      ? [await local.unary(method, messages[0] as never)]
      : await Array.fromAsync(local.stream(method, each(messages) as never) as AsyncIterable<Message>);
  const ttrpc: Call = async (method, messages) => {
    const client = new TestClient(server.socket);
    try {
      return await Array.fromAsync(client.call(method, messages as never) as AsyncIterable<Message>);
    } finally {
      client.close();
    }
  };
  const rest = new RestClient(server.url, secrets.all, services);
  const faces: Record<string, Call> = {
    ttRPC: ttrpc,
    "Connect, HTTP/1.1": viaConnect(createConnectTransport({ ...options, httpVersion: "1.1" })),
    "Connect JSON, HTTP/2": viaConnect(
      createConnectTransport({ ...options, httpVersion: "2", useBinaryFormat: false }),
    ),
    gRPC: viaConnect(createGrpcTransport(options)),
    "gRPC-Web": viaConnect(createGrpcWebTransport({ ...options, httpVersion: "1.1" })),
    REST: (method, messages) => rest.call(method, messages),
  };
  const collected = new Set(
    createRestRoutes(services)
      .filter((route) => route.collects)
      .map(({ method }) => method),
  );

  const methods = services.flatMap(({ service }) => service.methods);
  assert.deepEqual(new Set(requests.map(([method]) => method)), new Set(methods), "every method is called");
  for (const [method, messages] of requests) {
    await t.test(`${method.parent.name}.${method.name}`, async () => {
      const expected = await inProcess(method, messages);
      assert.ok(expected.length > 0);
      for (const [face, call] of Object.entries(faces)) {
        // Streams in both directions at once need HTTP/2 there; the protocol says so itself.
        if (method.methodKind === "bidi_streaming" && oneDirection.includes(face)) {
          await assert.rejects(call(method, messages), face);
          continue;
        }
        const answers = await call(method, messages);
        const merged = face === "REST" && (collected.has(method) || isRawBody(method));
        assert.deepEqual(
          comparable(answers),
          comparable(merged ? [onlyBody(method, expected)] : expected),
          face,
        );
      }
    });
  }
});

const oneDirection = ["Connect, HTTP/1.1", "gRPC-Web"];
const rawBodies = ["ReadFile", "DownloadArchive", "ExportWorkspace", "ConnectPort"];

function isRawBody(method: DescMethod): boolean {
  return rawBodies.includes(method.name);
}

/** What a client that gets one document, or only a body, can know. */
function onlyBody(method: DescMethod, messages: readonly Message[]): Message {
  const merged = mergeMessages(method.output, messages as never);
  return isRawBody(method)
    ? create(method.output, { data: (merged as unknown as { data: Uint8Array }).data } as never)
    : merged;
}

/** Bytes by value, whatever kind of array holds them; unknown fields and internals left out. */
function comparable(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, comparable(item)]),
  );
}
