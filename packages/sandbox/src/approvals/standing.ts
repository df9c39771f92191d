import type { NewEvent } from "@caisson/store";
import type { Answer, Question } from "./approval.ts";
import type { Grants } from "./grants.ts";
import { type ApprovalRule, ruleFor } from "./rules.ts";
import type { ApprovalSettings } from "./settings.ts";

/** Answers by rule whose event was written, remembered at most. */
const mostTold = 4096;

/** Answers that need no person: the machine's policy, rules, and what was answered for a sandbox. */
export class StandingAnswers {
  readonly #settings: ApprovalSettings;
  readonly #grants: Grants;
  readonly #tell: (event: NewEvent) => void;
  readonly #unreadable: (error: unknown) => void;
  readonly #told = new Set<string>();

  /** `tell` keeps an event; `unreadable` is called when the kept rules cannot be read. */
  constructor(
    settings: ApprovalSettings,
    grants: Grants,
    tell: (event: NewEvent) => void,
    unreadable: (error: unknown) => void,
  ) {
    this.#settings = settings;
    this.#grants = grants;
    this.#tell = tell;
    this.#unreadable = unreadable;
  }

  /** The answer to a question; undefined if a person has to be asked. */
  async find(question: Question): Promise<Answer | undefined> {
    const settings = this.#settings;
    const forbidden = ruleFor(settings.forbidden, question);
    if (forbidden) return this.#byRule(question, forbidden, "policy");
    let kept: readonly ApprovalRule[] = [];
    try {
      kept = settings.always ? ((await settings.kept?.read()) ?? []) : [];
    } catch (error) {
      // Without the rules nobody knows what they forbid.
      this.#unreadable(error);
      return { allow: false, scope: "once", by: "rule: the kept rules cannot be read" };
    }
    const rule = ruleFor([...settings.rules, ...kept], question);
    if (rule && !rule.allow) return this.#byRule(question, rule, "rule");
    const grant = this.#grants.find(question);
    if (grant) return { ...grant, scope: "sandbox" };
    if (rule) return this.#byRule(question, rule, "rule");
    if (settings.kinds.includes(question.kind)) return undefined;
    return { allow: false, scope: "once", by: `rule: ${question.kind} is not asked for` };
  }

  /** Told once for each sandbox and subject. */
  #byRule(question: Question, rule: ApprovalRule, source: "policy" | "rule"): Answer {
    const by = `${source}: ${rule.text}`;
    const { sandboxId, kind, subject, agent } = question;
    const told = JSON.stringify([sandboxId, kind, subject, by]);
    if (!this.#told.has(told)) {
      if (this.#told.size >= mostTold) this.#told.clear();
      this.#told.add(told);
      const data = { kind, subject, agent, allow: rule.allow, rule: rule.text, by: source };
      this.#tell({ type: "approval.decided", actor: "daemon", sandboxId, data });
    }
    return { allow: rule.allow, scope: "always", by };
  }
}
