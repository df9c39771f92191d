import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  ExtendSandboxRequestSchema,
  PruneRequestSchema,
  SandboxService,
  SystemService,
} from "@caisson/contract";
import { openSqliteStore } from "@caisson/store";
import { Repeats } from "./repeats.ts";

const call = (actor: string) => ({ actor, requestId: "r", signal: new AbortController().signal });

test("a repeated call gets the first answer, also after a restart", async () => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-repeats-"));
  const open = () => openSqliteStore({ file: join(dir, "log.db") });
  let done = 0;
  const method = SystemService.method.prune;
  const prune = (repeats: Repeats, key: string, actor = "uid:1") =>
    repeats.once(method, create(PruneRequestSchema, { idempotencyKey: key }), call(actor), async () => ({
      sandboxes: ++done,
      bytes: 5n,
    }));
  try {
    let store = await open();
    let repeats = new Repeats(store);
    const [first, second] = await Promise.all([prune(repeats, "k"), prune(repeats, "k")]);
    assert.equal(first.sandboxes, 1);
    assert.equal(second.sandboxes, 1);
    assert.equal((await prune(repeats, "")).sandboxes, 2);
    assert.equal((await prune(repeats, "k", "uid:2")).sandboxes, 3, "keys of others are others");
    await store.close();
    store = await open();
    repeats = new Repeats(store);
    assert.equal((await prune(repeats, "k")).sandboxes, 1);
    await store.close();
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("the same key for another request is a conflict", async () => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-repeats-"));
  const store = await openSqliteStore({ file: join(dir, "log.db") });
  try {
    const repeats = new Repeats(store);
    const extend = (idleTtlS: number) =>
      repeats.once(
        SandboxService.method.extendSandbox,
        create(ExtendSandboxRequestSchema, { idempotencyKey: "k", idleTtlS }),
        call("uid:1"),
        async () => ({}),
      );
    await extend(5);
    await extend(5);
    await assert.rejects(extend(6), { code: "IDEMPOTENCY_CONFLICT" });
  } finally {
    await store.close();
    rmSync(dir, { recursive: true });
  }
});
