import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError, Tier } from "@caisson/contract";
import { Profiles } from "./index.ts";

const codeIs = (code: string, words: RegExp) => (error: unknown) =>
  error instanceof CaissonError && error.code === code && words.test(error.message);

test("every option of every profile is explained", () => {
  for (const profile of new Profiles().list()) {
    assert.equal(Object.keys(profile.explained).length, 15);
    for (const line of Object.values(profile.explained)) assert.match(line, /: .+\.$/);
  }
});

test("a profile of the configuration changes what it names and keeps the rest", () => {
  const profiles = new Profiles({
    mine: {
      extends: "restrictive",
      limits: { pids: 7 },
      syscalls: ["debug"],
      deny_read: ["~/.ssh"],
      env: { A: "1" },
      secrets: ["TOKEN"],
      caches: ["npm"],
    },
    other: { extends: "mine", limits: { memory_bytes: 5_000_000 }, caches: ["claude"] },
  });
  const other = profiles.get("other");
  assert.equal(other.limits.pids, 7);
  assert.equal(other.limits.memoryBytes, 5_000_000);
  assert.equal(other.limits.timeoutMs, profiles.get("restrictive").limits.timeoutMs);
  assert.deepEqual(other.syscalls, ["debug"]);
  assert.deepEqual(other.env, { A: "1" });
  assert.deepEqual([other.secrets, other.caches], [["TOKEN"], ["npm", "claude"]]);
});

test("mistakes in a profile are named", () => {
  const mistakes: [unknown, RegExp][] = [
    [{ limit: {} }, /profiles\.x\.limit is not known/],
    [{ limits: { memory: 1 } }, /profiles\.x\.limits\.memory is not known/],
    [{ limits: { pids: -1 } }, /whole number/],
    [{ extends: "nothing" }, /names no profile: nothing/],
    [{ syscalls: ["ptrace"] }, /knows debug and nested, not ptrace/],
    [{ deny_read: ["relative"] }, /absolute/],
    [{ network: "open" }, /can be off, allow, ask, on/],
    [{ secrets: "TOKEN" }, /profiles\.x\.secrets must be a list/],
    [{ env: { "A B": "1" } }, /variable's name/],
    ["text", /must be a table/],
  ];
  for (const [profile, words] of mistakes) {
    assert.throws(() => new Profiles({ x: profile }), codeIs("CONFIG_INVALID", words));
  }
  assert.throws(() => new Profiles({ moderate: {} }), codeIs("CONFIG_INVALID", /exists already/));
  assert.throws(
    () => new Profiles().get("nope"),
    codeIs("INVALID_INPUT", /there are restrictive, moderate, permissive/),
  );
});

test("a kind of agent gets at least what its rule says", () => {
  const profiles = new Profiles({}, { codex: { minimum_tier: "gvisor", profile: "restrictive" } });
  assert.deepEqual(profiles.ruleFor("codex"), { minimumTier: Tier.GVISOR, profile: "restrictive" });
  assert.equal(profiles.ruleFor("other"), undefined);
  const mistakes: unknown[] = [{ minimum_tier: "weak" }, { profile: "nope" }, { tier: "gvisor" }, 3];
  for (const rule of mistakes)
    assert.throws(() => new Profiles({}, { codex: rule }), codeIs("CONFIG_INVALID", /agents\.codex/));
});
