import assert from "node:assert/strict";
import { test } from "node:test";
import { Demand } from "./demand.ts";

const bounds = { min: 2, max: 8 };

test("a pool that is hardly used has its least size", () => {
  const demand = new Demand(0);
  assert.equal(demand.target(0, bounds), 2);
  demand.took(1000);
  assert.equal(demand.target(1001, bounds), 2);
});

test("the size follows a steady rate up and falls when it ends", () => {
  const demand = new Demand(0);
  let now = 0;
  for (; now < 30_000; now += 100) demand.took(now);
  assert.ok(Math.abs(demand.rate(now) - 10) < 1);
  assert.equal(demand.target(now, bounds), 5);
  assert.equal(demand.target(now + 60_000, bounds), 2);
});

test("the size never leaves its bounds", () => {
  const demand = new Demand(0);
  for (let i = 0; i < 10_000; i += 1) demand.took(i / 10);
  assert.equal(demand.target(1000, bounds), 8);
  assert.equal(demand.target(1000, { min: 0, max: 0 }), 0);
});
