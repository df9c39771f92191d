import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ApprovalState, CaissonError, DecisionScope } from "@caisson/contract";
import { openSqliteStore, type Store } from "@caisson/store";
import type { Question } from "./approval.ts";
import { Approvals } from "./approvals.ts";
import { parseRules } from "./rules.ts";
import type { ApprovalSettings } from "./settings.ts";

const dir = mkdtempSync(join(tmpdir(), "caisson-approvals-"));
const stores: Store[] = [];
after(async () => {
  for (const store of stores) await store.close();
  rmSync(dir, { recursive: true });
});

async function open(settings: Partial<ApprovalSettings> = {}) {
  const store = await openSqliteStore({ file: join(dir, `${stores.length}.db`) });
  stores.push(store);
  const kept: string[] = [];
  const approvals = new Approvals({
    store,
    settings: {
      kept: {
        read: async () => parseRules(kept, "kept"),
        add: async (rule) => void kept.push(rule),
      },
      ...settings,
    },
  });
  return { approvals, store, kept };
}

const person = { actor: "uid:1000" };
const once = { allow: true, scope: DecisionScope.ONCE };

function question(change: Partial<Question> = {}): Question {
  return {
    kind: "network",
    subject: "example.com:443",
    sandboxId: "sb_1",
    agent: "codex",
    reason: "no rule allows it",
    by: "sandbox:sb_1",
    signal: new AbortController().signal,
    ...change,
  };
}

/** Asks; resolves when the request can be seen. */
async function waiting(approvals: Approvals, asked: Partial<Question> = {}) {
  const answer = approvals.ask(question(asked));
  await new Promise((resolve) => setImmediate(resolve));
  const [newest] = approvals.list({ sandboxId: "", all: false });
  return { answer, id: newest?.record.id ?? "" };
}

const refusal = (code: string) => (error: unknown) => error instanceof CaissonError && error.code === code;

test("a person's answer reaches whoever asked, and both are in the log with their actors", async () => {
  const { approvals, store } = await open();
  const { answer, id } = await waiting(approvals);
  await approvals.decide(id, once, person);
  assert.deepEqual(await answer, { allow: true, scope: "once", by: "uid:1000" });
  const events = store.read({ from: 0, types: ["approval."] });
  assert.deepEqual(
    events.map(({ type, actor, sandboxId }) => [type, actor, sandboxId]),
    [
      ["approval.requested", "sandbox:sb_1", "sb_1"],
      ["approval.decided", "uid:1000", "sb_1"],
    ],
  );
  await assert.rejects(approvals.decide(id, once, person), refusal("APPROVAL_DECIDED"));
});

test("no answer is a refusal, and so is a request that nobody waits for any more", async () => {
  const { approvals, store } = await open({ timeoutMs: 20 });
  assert.equal((await approvals.ask(question())).allow, false);
  const leaving = new AbortController();
  const slow = (await open()).approvals;
  const { answer, id } = await waiting(slow, { signal: leaving.signal });
  leaving.abort();
  assert.equal((await answer).allow, false);
  await assert.rejects(slow.decide(id, once, person), refusal("APPROVAL_DECIDED"));
  await store.commit([]);
  const because = store.read({ from: 0, types: ["approval.expired"] }).map(({ data }) => data.because);
  assert.deepEqual(because, ["no answer came in time"]);
});

test("identical requests share one approval", async () => {
  const { approvals } = await open();
  const first = await waiting(approvals);
  const second = await waiting(approvals);
  const other = await waiting(approvals, { subject: "other.test:443" });
  assert.equal(first.id, second.id);
  assert.notEqual(first.id, other.id);
  assert.equal(approvals.get(first.id).waiting, 2);
  await approvals.decide(first.id, once, person);
  assert.ok((await first.answer).allow && (await second.answer).allow);
  approvals.close();
  assert.equal((await other.answer).allow, false);
});

test("an answer for the sandbox holds for it alone, also after a restart, until it ends", async () => {
  const { approvals, store } = await open();
  const { answer, id } = await waiting(approvals);
  await approvals.decide(id, { allow: true, scope: DecisionScope.SANDBOX }, person);
  await answer;
  const again = new Approvals({ store });
  assert.deepEqual(await again.ask(question()), { allow: true, scope: "sandbox", by: "uid:1000" });
  const other = await waiting(again, { sandboxId: "sb_2", by: "sandbox:sb_2" });
  assert.ok(other.id);
  await store.commit([], again.sandboxEnded("sb_1"));
  again.close();
  const third = new Approvals({ store });
  const asked = await waiting(third);
  assert.ok(asked.id, "it is asked again");
  third.close();
});

test("an answer for always becomes a rule, and others who wait for the same have it too", async () => {
  const { approvals, kept } = await open();
  const mine = await waiting(approvals);
  const theirs = approvals.ask(question({ sandboxId: "sb_2" }));
  await new Promise((resolve) => setImmediate(resolve));
  await approvals.decide(mine.id, { allow: true, scope: DecisionScope.ALWAYS }, person);
  assert.deepEqual(kept, ["allow network example.com:443"]);
  assert.equal((await theirs).allow, true);
  const next = await approvals.ask(question({ sandboxId: "sb_3" }));
  assert.deepEqual(next, { allow: true, scope: "always", by: "rule: allow network example.com:443" });
});

test("rules answer without a person; the log says which, once for each sandbox and subject", async () => {
  const { approvals, store } = await open({
    rules: parseRules(["allow network *", "deny network *.evil.test:*"], "config"),
    forbidden: parseRules(["deny network forbidden.test:*"], "policy"),
  });
  assert.equal((await approvals.ask(question())).allow, true);
  assert.equal((await approvals.ask(question())).allow, true);
  assert.equal((await approvals.ask(question({ subject: "x.evil.test:1" }))).allow, false);
  const forbidden = await approvals.ask(question({ subject: "forbidden.test:1" }));
  assert.equal(forbidden.by, "policy: deny network forbidden.test:*");
  await store.commit([]);
  const decided = store.read({ from: 0, types: ["approval.decided"] });
  assert.deepEqual(
    decided.map(({ actor, data }) => [actor, data.subject, data.allow]),
    [
      ["daemon", "example.com:443", true],
      ["daemon", "x.evil.test:1", false],
      ["daemon", "forbidden.test:1", false],
    ],
  );
});

test("what the configuration does not ask for is refused at once", async () => {
  const { approvals } = await open({ kinds: [] });
  assert.equal((await approvals.ask(question())).allow, false);
});

test("the machine's policy can forbid answers for always", async () => {
  const { approvals } = await open({ always: false });
  const { answer, id } = await waiting(approvals);
  const always = { allow: true, scope: DecisionScope.ALWAYS };
  await assert.rejects(approvals.decide(id, always, person), refusal("POLICY_FORBIDS"));
  await approvals.decide(id, once, person);
  assert.equal((await answer).allow, true);
});

test("kept rules that cannot be read refuse", async () => {
  const kept = {
    read: async () => {
      throw new Error("broken");
    },
    add: async () => {},
  };
  const { approvals } = await open({ kept });
  assert.equal((await approvals.ask(question())).allow, false);
});

test("nobody answers their own request, a sandbox none at all", async () => {
  const { approvals } = await open();
  const { answer, id } = await waiting(approvals, { by: "key:ci" });
  await assert.rejects(approvals.decide(id, once, { actor: "key:ci" }), refusal("FORBIDDEN"));
  await assert.rejects(approvals.decide(id, once, { actor: "sandbox:sb_1" }), refusal("FORBIDDEN"));
  await assert.rejects(approvals.decide(id, once, { actor: "sandbox:sb_2" }), refusal("FORBIDDEN"));
  await approvals.decide(id, { allow: false, scope: DecisionScope.ONCE }, { actor: "key:other" });
  assert.deepEqual(await answer, { allow: false, scope: "once", by: "key:other" });
});

test("a sandbox cannot flood the person", async () => {
  const { approvals, store } = await open();
  const asked = Array.from({ length: 200 }, (_, n) => approvals.ask(question({ subject: `n${n}.test:443` })));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(approvals.list({ sandboxId: "", all: true }).length, 16);
  approvals.close();
  assert.ok((await Promise.all(asked)).every(({ allow }) => !allow));
  await store.commit([]);
  assert.equal(store.read({ from: 0, types: ["approval.limited"] }).length, 1);
});

test("who was just refused is not asked about again for a while", async () => {
  const { approvals } = await open();
  const { answer, id } = await waiting(approvals);
  await approvals.decide(id, { allow: false, scope: DecisionScope.ONCE }, person);
  await answer;
  assert.deepEqual(await approvals.ask(question()), { allow: false, scope: "once", by: "uid:1000" });
  assert.equal(approvals.list({ sandboxId: "", all: false }).length, 0);
});

test("what an earlier daemon left waiting has expired", async () => {
  const { approvals, store } = await open();
  const { id } = await waiting(approvals);
  await store.commit([]);
  const next = new Approvals({ store });
  await next.recover();
  assert.equal(next.get(id).record.state, ApprovalState.EXPIRED);
  const last = store.read({ from: 0, types: ["approval.expired"] }).at(-1);
  assert.equal(last?.data.because, "the daemon was started anew");
  approvals.close();
});

test("the end of a sandbox ends its requests", async () => {
  const { approvals } = await open();
  const { answer } = await waiting(approvals);
  approvals.sandboxEnded("sb_1");
  assert.equal((await answer).allow, false);
  assert.equal(approvals.list({ sandboxId: "", all: false }).length, 0);
});

test("two things that would look the same on a terminal are not asked for", async () => {
  const { approvals } = await open();
  for (const subject of ["a.test\u001b[2K:443", "a.test\u202e:443", "a\u200b.test:443", "x".repeat(600), ""])
    assert.match((await approvals.ask(question({ subject }))).by, /cannot be shown/);
  const { id } = await waiting(approvals, { reason: "because\u001b]0;title\u0007" });
  assert.ok(!approvals.get(id).record.reason.includes("\u001b"));
  approvals.close();
});
