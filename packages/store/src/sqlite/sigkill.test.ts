import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openSqliteStore } from "./index.ts";
import { scratch } from "./testing/scratch.ts";

/** Commits in a process of its own and kills it after a random while; resolves with what was acknowledged. */
async function commitAndKill(file: string, ms: number): Promise<Map<number, number>> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "testing/committer.ts"), file], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk) => {
    if (text === "") setTimeout(() => child.kill("SIGKILL"), ms);
    text += chunk;
  });
  await new Promise((resolve) => child.on("close", resolve));
  const acknowledged = new Map<number, number>();
  for (const line of text.split("\n").slice(1, -1)) {
    const [seq, mine] = line.split(" ").map(Number);
    acknowledged.set(seq!, mine!);
  }
  return acknowledged;
}

test("what was acknowledged before a SIGKILL is there afterwards, in order, and the chain holds", async () => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-store-"));
  const file = join(dir, "log.db");
  try {
    const all = new Map<number, number>();
    for (let round = 0; round < 8; round++) {
      for (const [seq, mine] of await commitAndKill(file, 5 + Math.random() * 150)) all.set(seq, mine);
      const store = await openSqliteStore({ file });
      const { intact, checked } = await store.verify(0);
      assert.ok(intact);
      assert.equal(checked, store.head);
      const stored = new Map<number, unknown>();
      for (let from = 0; from < store.head; ) {
        const page = store.read({ from });
        for (const event of page) stored.set(event.seq, event.data.mine);
        from = page.at(-1)!.seq;
      }
      assert.deepEqual(
        [...stored.keys()],
        Array.from({ length: store.head }, (_, index) => index + 1),
      );
      for (const [seq, mine] of all) assert.equal(stored.get(seq), mine);
      await store.close();
    }
    assert.ok(all.size > 0);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("the write-ahead log stays bounded, also where every daemon is killed before it could fold it", () => {
  using place = scratch();
  const script = `import { openSqliteStore } from ${JSON.stringify(join(import.meta.dirname, "index.ts"))};
    const store = await openSqliteStore({ file: ${JSON.stringify(place.file)} });
    for (let n = 0; n < 12; n++)
      await store.commit([], [{ put: "value", key: "large", value: String(n).repeat(1 << 20) }]);
    process.kill(process.pid, "SIGKILL");`;
  for (let round = 0; round < 3; round++)
    spawnSync(process.execPath, ["--no-warnings", "--input-type=module-typescript", "-e", script]);
  const { size } = statSync(`${place.file}-wal`);
  // Each round adds some 15 MB.
  assert.ok(size > 10 << 20 && size < 25 << 20, `${size} bytes`);
});
