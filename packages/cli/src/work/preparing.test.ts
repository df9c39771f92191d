import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Client } from "@caisson/client";
import { MemoryIo } from "../testing/memory-io.ts";
import { tellPreparing } from "./preparing.ts";

const clear = "\r\x1b[K";

/** Somebody who waits, and how to let a second pass. */
function waiter(t: TestContext, says: () => string, terminals: "stderr"[]) {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const drivers = () => [{ preparing: "" }, { preparing: says() }];
  const client = { system: { capabilities: async () => ({ drivers: drivers() }) } } as unknown as Client;
  const io = new MemoryIo({ terminals });
  const { promise, resolve } = Promise.withResolvers<string>();
  const told = tellPreparing(io, client, promise);
  const second = async () => {
    t.mock.timers.tick(1000);
    await setImmediate();
  };
  return { io, resolve, told, second };
}

test("what a driver makes is told on one line, which is gone at the end", async (t) => {
  let words = "";
  const { io, resolve, told, second } = waiter(t, () => words, ["stderr"]);
  await second();
  assert.equal(io.err, "");
  for (words of ["copying\x1b]0;title\x07", "booting"]) await second();
  resolve("box");
  assert.equal(await told, "box");
  assert.ok(!io.err.includes("\x1b]"), "nothing in it moves the terminal");
  assert.ok(io.err.startsWith(`${clear}caisson: copying`), JSON.stringify(io.err));
  assert.ok(io.err.endsWith(`${clear}caisson: booting …${clear}`), JSON.stringify(io.err));
  const before = io.err;
  await second();
  assert.equal(io.err, before);
});

test("a program that reads the standard error is told nothing", async (t) => {
  const { io, resolve, told, second } = waiter(t, () => "booting", []);
  await second();
  resolve("box");
  await told;
  assert.equal(io.err, "");
});
