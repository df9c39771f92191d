import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError, EventService, SystemService, serve } from "@caisson/contract";
import { type BeginSpan, instrument } from "./instrument.ts";
import { Metrics } from "./metrics.ts";

const call = {
  actor: "test",
  signal: new AbortController().signal,
  requestId: "r1",
  traceparent: "00-a-b-01",
};

test("every call is counted by method and outcome, and its trace context is passed on", async () => {
  const metrics = new Metrics();
  const spans: unknown[] = [];
  const begin: BeginSpan = (name, traceparent) => ({
    traceparent: "00-own",
    end: (outcome) => spans.push({ name, traceparent, ...outcome }),
  });
  let passedOn = {};
  const impl = {
    getHealth: async (_: object, { traceparent, requestId, actor }: typeof call) => {
      passedOn = { traceparent, requestId, actor };
      return { ready: true };
    },
    trustProject: async () => {
      throw new CaissonError("FORBIDDEN", "no");
    },
  };
  const [system] = instrument(
    [serve(SystemService, { ...missing(SystemService), ...impl } as never)],
    metrics,
    begin,
  );
  const methods = system!.impl as unknown as Record<string, (request: object, c: object) => Promise<unknown>>;
  await methods.getHealth!({}, { ...call, attempt: 3 });
  await assert.rejects(methods.trustProject!({}, call));
  const text = metrics.text();
  assert.match(text, /caisson_calls_total\{method="GetHealth",code="OK"\} 1/);
  assert.match(text, /caisson_calls_total\{method="TrustProject",code="FORBIDDEN"\} 1/);
  assert.match(text, /caisson_call_seconds_bucket\{method="GetHealth",le="\+Inf"\} 1/);
  const [first] = spans as { traceparent: string; attributes: object }[];
  assert.equal(first!.traceparent, "00-a-b-01");
  assert.deepEqual(first!.attributes, { "sandbox.request_id": "r1", "sandbox.retry.attempt": 3 });
  assert.deepEqual(passedOn, { traceparent: "00-own", requestId: "r1", actor: "test" });
});

test("a stream that its reader leaves early is counted too", async () => {
  const metrics = new Metrics();
  const impl = {
    async *subscribeEvents() {
      yield {};
      yield {};
    },
  };
  const [events] = instrument([serve(EventService, { ...missing(EventService), ...impl } as never)], metrics);
  const methods = events!.impl as unknown as Record<
    string,
    (request: object, c: object) => AsyncIterable<unknown>
  >;
  for await (const _ of methods.subscribeEvents!({}, call)) break;
  assert.match(metrics.text(), /caisson_calls_total\{method="SubscribeEvents",code="OK"\} 1/);
});

function missing(service: { methods: readonly { localName: string }[] }): Record<string, () => never> {
  const none = () => {
    throw new Error("not called here");
  };
  return Object.fromEntries(service.methods.map((method) => [method.localName, none]));
}
