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

test("an attempt that heard nothing in its time counts as unavailable; one without a bound does not", async () => {
  const late = async () => {
    throw new CaissonError("DEADLINE_EXCEEDED", "late");
  };
  const options = { clock: fakeClock(), retry: false };
  await assert.rejects(withRetries(late, options), { code: "UNAVAILABLE" });
  const unbounded = { ...options, attemptTimeoutMs: Number.POSITIVE_INFINITY };
  await assert.rejects(withRetries(late, unbounded), { code: "DEADLINE_EXCEEDED" });
});

test("an attempt gets what is left of the whole time", async () => {
  const clock = fakeClock();
  const given: number[] = [];
  const call = async ({ timeoutMs }: { timeoutMs: number }) => {
    given.push(timeoutMs);
    clock.time += timeoutMs;
    throw unavailable();
  };
  await assert.rejects(withRetries(call, { clock, retry: true }));
  assert.deepEqual(given, [60_000, 60_000, 59_500]);
  // A command that may take longer than all attempts together gets its own time, once.
  given.length = 0;
  await assert.rejects(withRetries(call, { clock, retry: true, attemptTimeoutMs: 600_000 }));
  assert.deepEqual(given, [600_000]);
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
