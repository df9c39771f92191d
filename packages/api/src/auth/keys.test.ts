import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Scope } from "@caisson/contract";
import { openSqliteStore } from "@caisson/store";
import { createKeys } from "./keys.ts";

async function withStore(
  use: (open: () => ReturnType<typeof openSqliteStore>, dir: string) => Promise<void>,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "caisson-keys-"));
  try {
    await use(() => openSqliteStore({ file: join(dir, "log.db") }), dir);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test("a key works until it is revoked, across restarts, and only its hash is on disk", async () => {
  await withStore(async (open, dir) => {
    let store = await open();
    const { key, secret } = await createKeys(store).create("ci", [Scope.READ], 0, "uid:1");
    assert.match(secret, /^csn_[A-Za-z0-9_-]{43}$/);
    assert.deepEqual(key.scopes, [Scope.READ]);
    await store.close();
    for (const name of readdirSync(dir)) {
      assert.ok(!readFileSync(join(dir, name)).includes(secret.slice(4)), `${name} holds the secret`);
    }
    store = await open();
    const keys = createKeys(store);
    assert.equal(keys.find(secret)?.name, "ci");
    assert.equal(keys.find(`${secret}x`), undefined);
    assert.equal(keys.find(""), undefined);
    await keys.revoke("CI", "uid:1");
    assert.equal(keys.find(secret), undefined);
    await store.close();
    store = await open();
    assert.equal(createKeys(store).find(secret), undefined);
    assert.deepEqual(
      store.read({ from: 0 }).map(({ type, actor }) => `${type} ${actor}`),
      ["key.created uid:1", "key.revoked uid:1"],
    );
    await store.close();
  });
});

test("a key expires, names are unique whatever the case, and the last use is noted", async () => {
  await withStore(async (open) => {
    const store = await open();
    let now = 1_000_000;
    const keys = createKeys(store, () => now);
    const { secret } = await keys.create("Short", [Scope.WRITE], 10, "uid:1");
    await assert.rejects(keys.create("sHORT", [Scope.WRITE], 0, "uid:1"), { code: "KEY_EXISTS" });
    await assert.rejects(keys.revoke("other", "uid:1"), { code: "KEY_NOT_FOUND" });
    assert.equal(keys.find(secret)?.name, "Short");
    assert.equal(keys.list()[0]?.lastUsedAt, 1_000_000);
    now += 10_000;
    assert.equal(keys.find(secret), undefined);
    await store.close();
  });
});
