import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "./errors.ts";
import { mayRetry, type RetryClock, waitBefore, withRetries } from "./retry.ts";

function fakeClock(random = 0.5): RetryClock & { slept: number[]; time: number } {
  return {
    time: 0,
    slept: [],
    now() {
      return this.time;
    },
    async sleep(ms) {
      this.slept.push(ms);
      this.time += ms;
    },
    random: () => random,
  };
}

const unavailable = () => new CaissonError("UNAVAILABLE", "away");

test("six attempts with the waits of the rules", async () => {
  const clock = fakeClock();
  let attempts = 0;
  await assert.rejects(
    withRetries(
      async () => {
        attempts++;
        throw unavailable();
      },
      { clock, retry: true },
    ),
    (error) => error instanceof CaissonError && error.code === "UNAVAILABLE",
  );
  assert.equal(attempts, 6);
  assert.deepEqual(clock.slept, [0, 500, 1000, 2000, 4000]);
});

test("jitter stays within a quarter either way", () => {
  assert.equal(waitBefore(3, 0), 375);
  assert.equal(waitBefore(3, 1), 625);
  assert.equal(waitBefore(2, 0.9), 0);
});

test("only what is unavailable is repeated, and only where that is allowed", async () => {
  for (const [error, retry] of [
    [new CaissonError("SANDBOX_NOT_FOUND", "none"), true],
    [unavailable(), false],
  ] as const) {
    let attempts = 0;
    await assert.rejects(
      withRetries(
        async () => {
          attempts++;
          throw error;
        },
        { clock: fakeClock(), retry },
      ),
    );
    assert.equal(attempts, 1);
  }
});

test("a command is only repeated under a key", () => {
  assert.equal(mayRetry("Exec", ""), false);
  assert.equal(mayRetry("Exec", "k"), true);
  assert.equal(mayRetry("GetSandbox", ""), true);
});

test("no attempt begins after the total time", async () => {
  const clock = fakeClock();
  let attempts = 0;
  await assert.rejects(
    withRetries(
      async () => {
        attempts++;
        clock.time += 59_000;
        throw unavailable();
      },
      { clock, retry: true },
    ),
  );
  assert.equal(attempts, 4);
});

test("the result of a later attempt is the result", async () => {
  const result = await withRetries(
    async ({ number }) => {
      if (number < 3) throw unavailable();
      return number;
    },
    { clock: fakeClock(), retry: true },
  );
  assert.equal(result, 3);
});

test("an attempt that hangs is given up and counts as unavailable", async () => {
  await assert.rejects(
    withRetries(
      ({ signal }) =>
        new Promise((_, reject) => signal!.addEventListener("abort", () => reject(signal!.reason))),
      { clock: fakeClock(), retry: false, attemptTimeoutMs: 5 },
    ),
    (error) => error instanceof CaissonError && error.code === "UNAVAILABLE",
  );
});

test("an aborted caller gets no further attempt", async () => {
  const controller = new AbortController();
  let attempts = 0;
  await assert.rejects(
    withRetries(
      async () => {
        attempts++;
        controller.abort();
        throw unavailable();
      },
      { clock: fakeClock(), retry: true, signal: controller.signal },
    ),
  );
  assert.equal(attempts, 1);
});
