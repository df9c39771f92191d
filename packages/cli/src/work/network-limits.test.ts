import assert from "node:assert/strict";
import { test } from "node:test";
import { networkLimitsText, readNetworkLimits } from "./network-limits.ts";

test("limits of the network are read as they are shown", () => {
  const texts = ["connections=100", "rate=20", "bytes=1g", "idle=30s", "connect=5s"];
  const limits = readNetworkLimits(texts);
  assert.deepEqual(limits, {
    connections: 100,
    connectionsPerSecond: 20,
    bytes: 1 << 30,
    idleTimeout: 30_000,
    connectTimeout: 5000,
  });
  assert.equal(networkLimitsText(limits), "connections=100, rate=20, bytes=1 GiB, idle=30s, connect=5s");
  assert.equal(readNetworkLimits([]), undefined);
});

test("a limit that there is not, or that is none, is a mistake of usage", () => {
  for (const text of ["conections=1", "rate", "rate=", "rate=0", "rate=fast", "idle=5 apples", "bytes=-1"])
    assert.throws(() => readNetworkLimits([text]), { message: /^--net-limit/ }, text);
});
