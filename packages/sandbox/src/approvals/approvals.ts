import { ApprovalState, CaissonError, type CallContext, DecisionScope } from "@caisson/contract";
import { type NewEvent, type StateChange, type Store, soonMs } from "@caisson/store";
import { type Answer, type ApprovalRecord, newApprovalId, plainText, type Question } from "./approval.ts";
import { Grants } from "./grants.ts";
import { ApprovalHistory } from "./history.ts";
import { AskLimiter } from "./limiter.ts";
import { Pending } from "./pending.ts";
import { ruleOf } from "./rules.ts";
import { type ApprovalSettings, defaultApprovalSettings } from "./settings.ts";
import { StandingAnswers } from "./standing.ts";

/** After a refusal the same request of the same sandbox is refused without asking for so long. */
const refusedAgainMs = 10_000;
/** Refusals that are remembered for that, at most. */
const mostRefused = 4096;

export interface Decision {
  allow: boolean;
  scope: DecisionScope;
}

interface Parts {
  store: Store;
  settings?: Partial<ApprovalSettings> | undefined;
  log?: (level: "warn" | "error", message: string, fields?: Record<string, unknown>) => void;
}

type Refused = { refused: string };

/** Requests that a person or a rule answers. Everything that needs an answer asks here. */
export class Approvals {
  readonly settings: ApprovalSettings;
  readonly #store: Store;
  readonly #log: NonNullable<Parts["log"]>;
  readonly #limiter: AskLimiter;
  readonly #grants: Grants;
  readonly #history: ApprovalHistory;
  readonly #pending = new Map<string, Pending>();
  readonly #byKey = new Map<string, Pending>();
  readonly #leave = new Map<string, () => void>();
  readonly #standing: StandingAnswers;
  readonly #refusedLately = new Map<string, { until: number; by: string }>();

  constructor({ store, settings, log }: Parts) {
    this.settings = { ...defaultApprovalSettings, ...settings };
    this.#store = store;
    this.#log = log ?? (() => {});
    this.#limiter = new AskLimiter(this.settings.bounds);
    this.#grants = new Grants(store);
    this.#history = new ApprovalHistory(store);
    this.#standing = new StandingAnswers(
      this.settings,
      this.#grants,
      (event) => this.#commitSoon([event]),
      (error) => this.#log("error", "the kept rules of approvals cannot be read", { error: String(error) }),
    );
  }

  /** What an earlier daemon left waiting: nobody waits for it any more. */
  async recover(): Promise<void> {
    const left = this.#history.newestFirst().filter(({ state }) => state === ApprovalState.PENDING);
    const changes = this.#history.prune(Date.now());
    if (left.length === 0 && changes.length === 0) return;
    const events = left.map((record) => this.#close(record, ApprovalState.EXPIRED, "", DecisionScope.ONCE));
    for (const event of events) event.data = { ...event.data, because: "the daemon was started anew" };
    await this.#store.commit(events, [...changes, ...left.map((record) => this.#history.put(record))], {
      withinMs: soonMs,
    });
  }

  /** Is this asked for at all? */
  asksFor(kind: Question["kind"]): boolean {
    return this.settings.kinds.includes(kind);
  }

  /** Resolves with the answer of a rule or a person; a refusal when none came in time. Never rejects. */
  async ask(asked: Question): Promise<Answer> {
    const question = { ...asked, reason: plainText(asked.reason) };
    // Two things that would look the same are never one.
    if (question.subject === "" || plainText(question.subject) !== question.subject)
      return { allow: false, scope: "once", by: "limit: what is asked for cannot be shown" };
    const byRule = await this.#standing.find(question);
    if (byRule) return byRule;
    const key = JSON.stringify([question.kind, question.sandboxId, question.subject, question.agent]);
    const lately = this.#refusedLately.get(key);
    if (lately && lately.until > performance.now()) return { allow: false, scope: "once", by: lately.by };
    this.#refusedLately.delete(key);
    if (question.signal.aborted) return { allow: false, scope: "once", by: "" };
    const pending = this.#byKey.get(key) ?? this.#open(question, key);
    if ("refused" in pending) return { allow: false, scope: "once", by: `limit: ${pending.refused}` };
    return pending.wait(question.signal);
  }

  get(id: string): { record: ApprovalRecord; waiting: number } {
    const record = this.#history.get(id);
    if (!record) throw new CaissonError("APPROVAL_NOT_FOUND", "there is no such approval");
    return { record, waiting: this.#pending.get(id)?.waiting ?? 0 };
  }

  /** Newest first. */
  list(query: { sandboxId: string; all: boolean }): { record: ApprovalRecord; waiting: number }[] {
    return this.#history
      .newestFirst()
      .filter(({ state }) => query.all || state === ApprovalState.PENDING)
      .filter(({ sandboxId }) => query.sandboxId === "" || sandboxId === query.sandboxId)
      .map((record) => ({ record, waiting: this.#pending.get(record.id)?.waiting ?? 0 }));
  }

  /** Answers a request that waits; resolves when the answer is on disk. */
  async decide(id: string, { allow, scope }: Decision, call: Pick<CallContext, "actor">): Promise<void> {
    const { record } = this.get(id);
    const pending = this.#pending.get(id);
    const reach = scope || DecisionScope.ONCE;
    if (!pending || pending.deciding)
      throw new CaissonError("APPROVAL_DECIDED", "nobody waits for this answer");
    checkDecider(record, call.actor);
    const rule = this.#checkReach(record, allow, reach);
    pending.deciding = true;
    try {
      if (rule) await this.settings.kept!.add(rule);
      const answer = { allow, by: call.actor };
      await this.#settle(pending, answer, reach, call.actor);
    } catch (error) {
      pending.deciding = false;
      // Its time may have come meanwhile.
      if (pending.waiting === 0 || Date.now() >= record.expiresAt)
        this.#expire(pending, "no answer came in time");
      throw error;
    }
    if (rule) await this.#settleAlike(record, allow, rule);
  }

  /** Nobody of this sandbox waits any more, and what was answered for it is forgotten. */
  sandboxEnded(sandboxId: string): StateChange[] {
    for (const pending of [...this.#pending.values()]) {
      if (pending.record.sandboxId === sandboxId) this.#expire(pending, "the sandbox has ended");
    }
    this.#limiter.forget(sandboxId);
    return this.#grants.drop(sandboxId);
  }

  close(): void {
    for (const pending of [...this.#pending.values()]) this.#expire(pending, "the daemon was stopped");
  }

  #open(question: Question, key: string): Pending | Refused {
    const place = this.#limiter.enter(question.sandboxId || question.by);
    if ("refused" in place) {
      if (place.first) {
        const data = { kind: question.kind, subject: question.subject, because: place.refused };
        const { by: actor, sandboxId } = question;
        this.#commitSoon([{ type: "approval.limited", actor, sandboxId, data }]);
      }
      return place;
    }
    const record = this.#record(question);
    const pending = new Pending(record, key, () => this.#expire(pending, "nobody waits for it any more"));
    const timer = setTimeout(() => this.#expire(pending, "no answer came in time"), this.settings.timeoutMs);
    timer.unref();
    this.#pending.set(record.id, pending);
    this.#byKey.set(key, pending);
    this.#leave.set(record.id, () => {
      clearTimeout(timer);
      place.leave();
    });
    const { kind, subject, agent, reason, requestedBy: actor, sandboxId } = record;
    const data = { id: record.id, kind, subject, agent, reason, expires_at: record.expiresAt };
    const changes = [...this.#history.prune(Date.now()), this.#history.put(record)];
    this.#store.commit([{ type: "approval.requested", actor, sandboxId, data }], changes).catch((error) => {
      // What cannot be written down cannot be asked either.
      this.#log("error", "an approval cannot be recorded", { error: String(error) });
      this.#expire(pending, "it could not be recorded");
    });
    return pending;
  }

  #record(question: Question): ApprovalRecord {
    const now = Date.now();
    const { kind, subject, sandboxId, agent, reason, by } = question;
    return {
      id: newApprovalId(),
      kind,
      subject,
      sandboxId,
      agent: plainText(agent),
      reason,
      requestedBy: by,
      state: ApprovalState.PENDING,
      requestedAt: now,
      expiresAt: now + this.settings.timeoutMs,
      decidedAt: 0,
      decidedBy: "",
      decisionScope: DecisionScope.UNSPECIFIED,
    };
  }

  /** What `always` needs: a place for the rule, leave to write it, and a subject that can stand in one. */
  #checkReach(record: ApprovalRecord, allow: boolean, reach: DecisionScope): string | undefined {
    if (reach === DecisionScope.SANDBOX && record.sandboxId === "")
      throw new CaissonError("INVALID_INPUT", "there is no sandbox yet that the answer could hold for");
    if (reach !== DecisionScope.ALWAYS) return undefined;
    if (!this.settings.always)
      throw new CaissonError("POLICY_FORBIDS", "the machine's policy does not allow answers for always");
    const rule = this.settings.kept && ruleOf(record, allow);
    if (!rule) throw new CaissonError("INVALID_INPUT", "there is no rule that could say this for always");
    return rule;
  }

  async #settle(
    pending: Pending,
    answer: { allow: boolean; by: string },
    reach: DecisionScope,
    actor: string,
  ): Promise<void> {
    const forSandbox = reach === DecisionScope.SANDBOX;
    const changes = forSandbox ? [this.#grants.change(pending.record, answer)] : [];
    const before = { ...pending.record };
    const state = answer.allow ? ApprovalState.ALLOWED : ApprovalState.DENIED;
    const event = this.#close(pending.record, state, answer.by, reach);
    try {
      await this.#store.commit([{ ...event, actor }], [...changes, this.#history.put(pending.record)]);
    } catch (error) {
      this.#history.put(Object.assign(pending.record, before));
      throw error;
    }
    if (forSandbox) this.#grants.remember(pending.record, answer);
    if (!answer.allow) {
      const until = performance.now() + refusedAgainMs;
      if (this.#refusedLately.size > mostRefused) this.#refusedLately.clear();
      this.#refusedLately.set(pending.key, { until, by: answer.by });
    }
    this.#remove(pending);
    pending.settle({ ...answer, scope: scopeName(reach) });
  }

  /** Others who wait for the same have their answer now, too. */
  async #settleAlike(record: ApprovalRecord, allow: boolean, rule: string): Promise<void> {
    for (const other of [...this.#pending.values()]) {
      if (other.deciding || other.record.kind !== record.kind || other.record.subject !== record.subject)
        continue;
      const answer = { allow, by: `rule: ${rule}` };
      await this.#settle(other, answer, DecisionScope.ALWAYS, "daemon").catch(() => {});
    }
  }

  #expire(pending: Pending, because: string): void {
    if (this.#pending.get(pending.record.id) !== pending || pending.deciding) return;
    this.#remove(pending);
    const event = this.#close(pending.record, ApprovalState.EXPIRED, "", DecisionScope.ONCE);
    event.data = { ...event.data, because };
    this.#commitSoon([event], [this.#history.put(pending.record)]);
    pending.settle({ allow: false, scope: "once", by: "" });
  }

  /** Ends a record; returns the event that tells of it. */
  #close(record: ApprovalRecord, state: ApprovalState, by: string, reach: DecisionScope): NewEvent {
    const { id, kind, subject, agent, sandboxId } = record;
    const expired = state === ApprovalState.EXPIRED;
    Object.assign(record, { state, decidedAt: Date.now(), decidedBy: by });
    if (!expired) record.decisionScope = reach;
    const told = expired ? {} : { allow: state === ApprovalState.ALLOWED, scope: scopeName(reach) };
    return {
      type: expired ? "approval.expired" : "approval.decided",
      actor: "daemon",
      sandboxId,
      data: { id, kind, subject, agent, ...told },
    };
  }

  #remove({ record, key }: Pending): void {
    this.#pending.delete(record.id);
    this.#byKey.delete(key);
    this.#leave.get(record.id)?.();
    this.#leave.delete(record.id);
  }

  #commitSoon(events: NewEvent[], changes: StateChange[] = []): void {
    this.#store.commit(events, changes, { withinMs: soonMs }).catch((error) => {
      this.#log("error", "an approval's event cannot be recorded", { error: String(error) });
    });
  }
}

function scopeName(reach: DecisionScope): Answer["scope"] {
  if (reach === DecisionScope.ALWAYS) return "always";
  return reach === DecisionScope.SANDBOX ? "sandbox" : "once";
}

/** Nobody answers their own request; the machine's owner, who is asked, may have caused it. */
function checkDecider(record: ApprovalRecord, actor: string): void {
  const isOwner = actor.startsWith("uid:");
  if (actor.startsWith("sandbox:") || (actor === record.requestedBy && !isOwner))
    throw new CaissonError("FORBIDDEN", "nobody answers their own request");
}
