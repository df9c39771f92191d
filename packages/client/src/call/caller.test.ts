import assert from "node:assert/strict";
import { test } from "node:test";
import * as contract from "@caisson/contract";
import { CaissonError, type CallOptions, type ErrorCode, type Transport } from "@caisson/contract";
import { Caller } from "./caller.ts";

/** A transport that fails as it is told, then answers. */
function failing(codes: ErrorCode[]): { transport: Transport; calls: CallOptions[] } {
  const calls: CallOptions[] = [];
  const attempt = (options: CallOptions = {}) => {
    calls.push({ ...options });
    const code = codes.shift();
    if (code) throw new CaissonError(code, "no");
  };
  const transport: Transport = {
    unary: async (_method, _request, options) => {
      attempt(options);
      return {} as never;
    },
    async *stream(_method, _request, options) {
      attempt(options);
      yield {} as never;
    },
    close: async () => {},
  };
  return { transport, calls };
}

const health = (c: typeof contract) => c.SystemService.method.getHealth;
const create = (c: typeof contract) => c.SandboxService.method.createSandbox;
const exec = (c: typeof contract) => c.ProcessService.method.exec;

test("what is unavailable is tried again, anything else is not", async () => {
  const { transport, calls } = failing(["UNAVAILABLE"]);
  await new Caller({ contract, transport }).unary(health, {});
  assert.equal(calls.length, 2);
  for (const code of ["INVALID_INPUT", "INTERNAL", "QUEUE_FULL", "CANCELLED"] as const) {
    const once = failing([code]);
    await assert.rejects(new Caller({ contract, transport: once.transport }).unary(health, {}), { code });
    assert.equal(once.calls.length, 1);
  }
});

test("what must not happen twice is tried again only with a key", async () => {
  const without = failing(["UNAVAILABLE"]);
  await assert.rejects(new Caller({ contract, transport: without.transport }).unary(create, {}), {
    code: "UNAVAILABLE",
  });
  assert.equal(without.calls.length, 1);
  const withKey = failing(["UNAVAILABLE"]);
  await new Caller({ contract, transport: withKey.transport }).collect(exec, {}, {}, { key: "k" });
  assert.equal(withKey.calls.length, 2);
});

test("an attempt that hears nothing in its time counts as a cut", async () => {
  const { transport, calls } = failing(["DEADLINE_EXCEEDED"]);
  await new Caller({ contract, transport }).unary(health, {});
  assert.equal(calls.length, 2);
  assert.ok(calls.every(({ timeoutMs }) => timeoutMs! > 0 && timeoutMs! <= 60_000));
  const waiting = failing(["DEADLINE_EXCEEDED"]);
  const caller = new Caller({ contract, transport: waiting.transport });
  await assert.rejects(caller.unary(health, {}, {}, { attemptTimeout: "none" }), {
    code: "DEADLINE_EXCEEDED",
  });
  assert.equal(waiting.calls[0]!.timeoutMs, undefined);
});

test("an aborted caller is not kept waiting for the next attempt", async () => {
  const { transport, calls } = failing(["UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE"]);
  const abort = new AbortController();
  const calling = new Caller({ contract, transport }).unary(health, {}, { signal: abort.signal });
  setTimeout(() => abort.abort(), 10);
  await assert.rejects(calling, { code: "CANCELLED" });
  assert.ok(calls.length <= 3);
});

test("in the same process there are neither retries, time limits nor keys", async () => {
  const { transport, calls } = failing(["UNAVAILABLE"]);
  const caller = new Caller({ contract, transport, retry: false });
  await assert.rejects(caller.unary(health, {}), { code: "UNAVAILABLE" });
  assert.deepEqual(calls, [{}]);
  assert.equal(caller.key({}), "");
  assert.equal(caller.key({ idempotencyKey: "mine" }), "mine");
});

test("the trace context goes along", async () => {
  const { transport, calls } = failing([]);
  const caller = new Caller({ contract, transport, traceparent: () => "00-aa" });
  await caller.unary(health, {});
  await caller.unary(health, {}, { traceparent: "00-bb" });
  assert.deepEqual(
    calls.map(({ headers }) => headers),
    [{ traceparent: "00-aa" }, { traceparent: "00-bb" }],
  );
});
