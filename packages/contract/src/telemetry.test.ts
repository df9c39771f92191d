import assert from "node:assert/strict";
import { test } from "node:test";
import { formatTraceparent, metricLabels, parseTraceparent } from "./telemetry.ts";

const valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

test("a trace context survives reading and writing", () => {
  const context = parseTraceparent(valid)!;
  assert.deepEqual(context, {
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: "00f067aa0ba902b7",
    sampled: true,
  });
  assert.equal(formatTraceparent(context), valid);
  assert.deepEqual(parseTraceparent(`01${valid.slice(2)}-later`), context);
});

test("what the standard calls invalid is ignored", () => {
  const bad = [
    "",
    `ff${valid.slice(2)}`,
    `${valid}-more`,
    valid.toUpperCase(),
    `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
    `00-4bf92f3577b34da6a3ce929d0e0e4736-${"0".repeat(16)}-01`,
    `${valid}\r\nx: y`,
  ];
  for (const header of bad) assert.equal(parseTraceparent(header), undefined, header);
});

test("metrics are never labelled by what is unbounded", () => {
  assert.deepEqual(metricLabels({ "sandbox.id": "sb_1", "sandbox.tier": "container" }), {
    "sandbox.tier": "container",
  });
});
