import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@caisson/client";
import { tierRows } from "./tier-table.ts";

/** A client on which making each next sandbox takes so long; the last number for all that follow. */
function clientWith(t: { mock: typeof import("node:test").mock }, ...createMs: number[]): Client {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const pass = async (ms: number) => {
    now += ms;
  };
  const box = { run: () => pass(3), delete: async () => {} };
  const create = async () => {
    await pass(createMs.length > 1 ? createMs.shift()! : createMs[0]!);
    return box;
  };
  const drivers = [{ name: "qemu", usable: true }];
  return { create, system: { capabilities: async () => ({ drivers }) } } as unknown as Client;
}

test("what is made once counts for the first sandbox, and not for what one takes", async (t) => {
  const [row] = await tierRows(clientWith(t, 64_000, 250), true);
  assert.deepEqual([row!.firstMs, row!.createMs, row!.execMs], [64_000, 250, 3]);
});

test("where nothing is made, the first one is measured", async (t) => {
  const [row] = await tierRows(clientWith(t, 7), true);
  assert.deepEqual([row!.firstMs, row!.createMs, row!.execMs], [undefined, 7, 3]);
});
