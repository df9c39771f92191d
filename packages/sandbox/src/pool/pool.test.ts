import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool, type PoolOptions } from "./pool.ts";
import { FakeDriver } from "./testing/fake-driver.ts";

class Harness implements AsyncDisposable {
  readonly driver = new FakeDriver();
  readonly launched: string[] = [];
  readonly gone: string[] = [];
  readonly pool: Pool;
  readonly kind = { driver: "fake", image: "host" };

  constructor(options: Partial<PoolOptions> = {}) {
    this.pool = new Pool({
      drivers: [this.driver],
      prepare: async (sandboxId) => ({ dir: `/nowhere/${sandboxId}`, cgroups: [] }),
      onLaunched: (sandboxId) => void this.launched.push(sandboxId),
      onGone: (sandboxId) => void this.gone.push(sandboxId),
      quietMs: 1,
      ...options,
    });
  }

  async until(what: () => boolean): Promise<void> {
    const patience = AbortSignal.timeout(20_000);
    while (!what()) await sleep(2, undefined, { signal: patience });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pool.close();
    for (const { die } of this.driver.alive.values()) await die("the test is over");
  }
}

test("a prewarmed pool gives sandboxes that waited, each once", async () => {
  await using h = new Harness({ min: 3 });
  h.pool.prewarm(h.kind);
  await h.until(() => h.pool.waiting === 3);
  const taken = await Promise.all([1, 2, 3].map(() => h.pool.take(h.kind)));
  assert.deepEqual(
    taken.map(({ warm }) => warm),
    [true, true, true],
  );
  assert.equal(new Set(taken.map(({ id }) => id)).size, 3);
  for (const { id, guest } of taken) {
    assert.match(id, /^sb_[0-9a-hjkmnp-tv-z]{16}$/);
    assert.equal(guest.hello.sealed, false);
    assert.equal(await guest.ping(), 0);
  }
  await h.until(() => h.pool.waiting === 3);
  const again = await h.pool.take(h.kind);
  assert.ok(!taken.some(({ id }) => id === again.id));
});

test("gives a spare one only when nobody waits, and takes back what is not used", async () => {
  await using h = new Harness({ min: 2, refillAtMostMs: 20 });
  h.pool.prewarm(h.kind);
  await h.until(() => h.pool.waiting === 2);
  const done = h.pool.working();
  assert.equal(await h.pool.spare(h.kind), undefined);
  done();
  const spare = await h.pool.spare(h.kind);
  assert.equal(spare?.warm, true);
  h.pool.discard(spare!);
  await h.until(() => h.gone.includes(spare!.id));
  await h.until(() => h.pool.waiting === 2);
});

test("makes room for a kind of which none waits, and leaves the others one each", async () => {
  await using h = new Harness({ min: 2, max: 4 });
  const kinds = [h.kind, ...["b", "c"].map((image) => ({ driver: "fake", image }))];
  for (const kind of kinds) await h.pool.take(kind);
  await h.until(() => h.pool.waiting === 4);
  for (const kind of kinds) {
    await h.pool.take(kind);
    await h.until(() => h.pool.waiting === 4);
    assert.equal((await h.pool.spare(kind))?.warm, true, kind.image);
    await h.until(() => h.pool.waiting === 4);
  }
});

test("with a size of zero every launch is cold and nothing waits", async () => {
  await using h = new Harness({ max: 0 });
  h.pool.prewarm(h.kind);
  const { warm } = await h.pool.take(h.kind);
  assert.equal(warm, false);
  await sleep(50);
  assert.equal(h.driver.specs.length, 1);
  assert.equal(h.pool.waiting, 0);
});

test("the pool launches one at a time and stays within its bound, also over several kinds", async () => {
  await using h = new Harness({ min: 4, max: 5 });
  const other = { driver: "fake", image: "other" };
  h.pool.prewarm(h.kind);
  h.pool.prewarm(other);
  await h.until(() => h.pool.waiting === 5);
  await sleep(50);
  assert.equal(h.pool.waiting, 5);
  assert.equal(h.driver.maxLaunching, 1);
});

test("the pool keeps still while somebody waits for work", async () => {
  await using h = new Harness({ refillAtMostMs: 600_000 });
  const done = h.pool.working();
  h.pool.prewarm(h.kind);
  await sleep(60);
  assert.equal(h.driver.specs.length, 0);
  done();
  await h.until(() => h.pool.waiting === 2);
});

test("steady work does not starve the pool for ever", async () => {
  await using h = new Harness({ refillAtMostMs: 5 });
  h.pool.working();
  h.pool.prewarm(h.kind);
  await h.until(() => h.pool.waiting === 2);
});

test("a taker gets the launch that is under way instead of waiting behind it", async () => {
  await using h = new Harness({ min: 1 });
  let release!: () => void;
  h.driver.hold = new Promise((resolve) => {
    release = resolve;
  });
  h.pool.prewarm(h.kind);
  await h.until(() => h.driver.specs.length === 1);
  const taking = h.pool.take(h.kind);
  release();
  const { warm, id } = await taking;
  assert.equal(id, h.driver.specs[0]!.sandboxId);
  assert.equal(warm, false);
});

test("a sandbox that dies while it waits is told as gone and replaced", async () => {
  await using h = new Harness({ min: 1 });
  h.pool.prewarm(h.kind);
  await h.until(() => h.pool.waiting === 1);
  const [first] = h.launched;
  await h.driver.alive.get(first!)!.die("crashed");
  await h.until(() => h.gone.includes(first!));
  await h.until(() => h.pool.waiting === 1);
  assert.notEqual((await h.pool.take(h.kind)).id, first);
  assert.ok(!h.gone.includes(h.launched[1]!));
});

test("what waited through a change of the host's mounts, or too long, is not given out", async () => {
  let mounts = "before";
  await using h = new Harness({ min: 1, mounts: () => mounts });
  h.pool.prewarm(h.kind);
  await h.until(() => h.pool.waiting === 1);
  mounts = "after";
  const { id, warm } = await h.pool.take(h.kind);
  assert.equal(warm, false);
  assert.notEqual(id, h.launched[0]);
  await h.until(() => h.gone.includes(h.launched[0]!));

  await using old = new Harness({ min: 1, maxAgeMs: 0 });
  old.pool.prewarm(old.kind);
  await old.until(() => old.pool.waiting === 1);
  assert.equal((await old.pool.take(old.kind)).warm, false);
});

test("a failed launch rejects the taker, leaves nothing, and the pool tries again later", async () => {
  const failures: unknown[] = [];
  await using h = new Harness({ min: 1, onRefillFailed: (error) => failures.push(error) });
  h.driver.failing = true;
  await assert.rejects(h.pool.take(h.kind), { code: "SANDBOX_FAILED" });
  await h.until(() => failures.length === 1);
  assert.equal(h.gone.length, h.driver.specs.length);
  h.driver.failing = false;
  await h.until(() => h.pool.waiting === 1);
});

test("a sandbox whose record cannot be kept is ended", async () => {
  await using h = new Harness({
    max: 0,
    onLaunched: () => {
      throw new Error("disk full");
    },
  });
  await assert.rejects(h.pool.take(h.kind), { code: "SANDBOX_FAILED" });
  assert.equal(h.driver.alive.size, 0);
});

test("a kind whose driver is not there is refused", async () => {
  await using h = new Harness({ max: 0 });
  await assert.rejects(h.pool.take({ driver: "none", image: "host" }), { code: "NO_DRIVER" });
  assert.deepEqual(h.gone, []);
});

test("closing ends everything that waits, and only that", async () => {
  await using h = new Harness({ min: 3 });
  h.pool.prewarm(h.kind);
  await h.until(() => h.pool.waiting === 3);
  const { id } = await h.pool.take(h.kind);
  await h.pool.close();
  assert.deepEqual([...h.driver.alive.keys()], [id]);
  await assert.rejects(h.pool.take(h.kind), { code: "UNAVAILABLE" });
});
