// The TypeScript contract and client, held to the vectors that clients in every language are held to.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  create,
  createRegistry,
  type DescMessage,
  equals,
  fromBinary,
  fromJson,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { CaissonError, connect } from "@caisson/client";
import * as contract from "@caisson/contract";
import { decodeMessage, encodeMessage } from "@caisson/contract/codec";
import { decodeJson, encodeJson } from "@caisson/contract/json";
import { decodeStatus } from "@caisson/contract/status";
import { decodeRequest, FrameDecoder } from "@caisson/contract/ttrpc";
import { readVectors, type Text, textOf } from "../vectors/read.ts";
import { written } from "../vectors/write.ts";

const schemas = Object.values(contract as Record<string, unknown>).filter(
  (value): value is DescMessage => (value as { kind?: string } | null)?.kind === "message",
);
const registry = createRegistry(...schemas);

test("the files are what protobuf makes of their messages", () => {
  for (const [name, content] of Object.entries(written)) {
    const file = readFileSync(join(import.meta.dirname, "../vectors", name), "utf8");
    assert.equal(file, content, `${name}: run node conformance/vectors/write.ts`);
  }
});

for (const one of readVectors<{ path: Text; workdir: Text; resolved?: Text; error?: string }>("paths.json")) {
  const path = textOf(one.path);
  test(`path ${JSON.stringify(path.slice(0, 40))}`, () => {
    const workdir = textOf(one.workdir);
    if (one.error) assert.throws(() => contract.resolvePath(path, workdir), { code: one.error });
    else assert.equal(contract.resolvePath(path, workdir), textOf(one.resolved!));
  });
}

for (const one of readVectors<{ name: string; message: string; json: never; rest: never; bytes: string }>(
  "codec.json",
)) {
  test(`codec: ${one.name}`, () => {
    const desc = registry.getMessage(one.message)!;
    const bytes = new Uint8Array(Buffer.from(one.bytes, "base64"));
    const message = fromBinary(desc, bytes);
    assert.ok(equals(desc, decodeMessage(desc, bytes), message));
    assert.deepEqual(new Uint8Array(encodeMessage(desc, message)), bytes);
    assert.ok(equals(desc, decodeJson(desc, one.rest), message));
    assert.deepEqual(encodeJson(desc, message), one.rest);
    assert.deepEqual(toBinary(desc, fromJson(desc, one.json)), bytes);
    assert.deepEqual(toJson(desc, message), one.json);
  });
}

test("every error of the table is read from its status", () => {
  const cases = readVectors<{
    code: string;
    status: string;
    number: number;
    http: number;
    next_step: string;
    grpc_status: string;
  }>("errors.json");
  assert.deepEqual(
    cases.map(({ code }) => code),
    Object.keys(contract.rules.errors),
  );
  for (const { code, status, number, http, next_step, grpc_status } of cases) {
    const error = decodeStatus(Buffer.from(grpc_status, "base64"));
    assert.deepEqual(
      [error.code, error.status, error.statusNumber, error.httpStatus, error.nextStep],
      [code, status, number, http, next_step],
    );
    assert.equal(error.metadata.request_id, "r1");
  }
});

for (const one of readVectors<Record<string, never>>("ttrpc.json")) {
  test(`ttRPC: ${one.name}`, () => {
    const seen: unknown[] = [];
    const decoder = new FrameDecoder({
      frame(stream, type, _flags, payload) {
        const request = decodeRequest(Buffer.from(payload));
        seen.push([stream, type, request.service, request.method, request.timeoutNano]);
        assert.equal(request.payload?.toString("base64"), one.payload);
        assert.deepEqual(Object.fromEntries(request.metadata), one.metadata);
      },
      oversize: () => assert.fail("oversize"),
    });
    decoder.push(Buffer.from(one.frame!, "hex"));
    assert.deepEqual(seen, [[one.stream, one.type, one.service, one.method, one.timeout_nano]]);
  });
}

interface RetryVector {
  name: string;
  method: string;
  key: string;
  random: number;
  attempt_timeout_ms?: number;
  answers: { code: string; took_ms?: number }[];
  calls: number;
  waits_ms: number[];
  outcome: string;
}

for (const one of readVectors<RetryVector>("retry.json")) {
  test(`retry: ${one.name}`, async () => {
    let time = 0;
    const waits: number[] = [];
    const clock = {
      now: () => time,
      random: () => one.random,
      async sleep(ms: number) {
        waits.push(ms);
        time += ms;
      },
    };
    let calls = 0;
    const outcome = await contract
      .withRetries(
        async () => {
          const { code, took_ms = 0 } = one.answers[calls++]!;
          time += took_ms;
          if (code !== "ok") throw new contract.CaissonError(code as never, code);
          return "ok";
        },
        { clock, retry: contract.mayRetry(one.method, one.key), attemptTimeoutMs: one.attempt_timeout_ms },
      )
      .catch((error: CaissonError) => error.code);
    assert.deepEqual([outcome, calls, waits], [one.outcome, one.calls, one.waits_ms]);
  });
}

interface ResumeVector {
  name: string;
  connections: { from: number; events: [kind: string, seq: number, value: never][]; end: "cut" | "end" }[];
  output: string;
  missing?: number;
  exit: number;
}

for (const one of readVectors<ResumeVector>("resume.json")) {
  test(`resume: ${one.name}`, async () => {
    const connections = [...one.connections];
    const transport: contract.Transport = {
      unary: async (method) => create(method.output, { sandbox: {} } as never) as never,
      async *stream(_method, requests) {
        const { from, events, end } = connections.shift()!;
        for await (const request of requests)
          assert.equal(Number((request as { from?: bigint }).from ?? 0), from);
        for (const [kind, seq, value] of events) {
          const data = { data: new TextEncoder().encode(value) };
          const inner = { exit: { code: value }, gap: { missingBytes: BigInt(seq) } }[kind] ?? data;
          yield create(contract.AttachProcessResponseSchema, {
            event: { seq: BigInt(seq), event: { case: kind, value: inner } as never },
          }) as never;
        }
        if (end === "cut") throw new CaissonError("UNAVAILABLE", "cut");
      },
      close: async () => {},
    };
    await using client = await connect({ transport });
    const run = (await client.sandboxes.get("sb_0123456789abcdef")).process("p1");
    let output = "";
    let missing = 0;
    for await (const event of run.output()) {
      if (event.stream === "gap") missing += event.missing;
      else output += Buffer.from(event.bytes);
    }
    assert.deepEqual([output, missing, (await run.exit).code], [one.output, one.missing ?? 0, one.exit]);
    assert.equal(connections.length, 0);
  });
}
