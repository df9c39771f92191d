import assert from "node:assert/strict";
import { unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import { openSqliteStore } from "@caisson/store";
import { onOwnMount } from "../../../test/support/own-mount.ts";

const event = { type: "test.x", actor: "test", data: { text: "x".repeat(300) } };

test("a full disk is a typed error, reads go on, and it works again when there is room", (t) =>
  onOwnMount(t, { file: import.meta.filename, size: "1m" }, async (dir) => {
    const store = await openSqliteStore({ file: join(dir, "log.db") });
    await store.commit([event]);
    writeFileSync(join(dir, "ballast"), Buffer.alloc(300 * 1024));
    let acknowledged = 1;
    await assert.rejects(
      async () => {
        for (let n = 0; n < 5000; n++) {
          await store.commit([event]);
          acknowledged++;
        }
      },
      (error) => error instanceof CaissonError && error.code === "STORAGE_FULL",
    );
    assert.match(store.trouble() ?? "", /full/);
    assert.equal(store.head, acknowledged);
    assert.equal(store.read({ from: acknowledged - 1 }).length, 1);
    unlinkSync(join(dir, "ballast"));
    await store.commit([event]);
    assert.equal(store.trouble(), undefined);
    assert.ok((await store.verify(0)).intact);
    await store.close();
    const again = await openSqliteStore({ file: join(dir, "log.db") });
    assert.equal(again.head, acknowledged + 1);
    await again.close();
  }));
