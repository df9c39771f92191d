// Rules that answer without a person: `allow network *.example.com:443`, `deny apply *`,
// `allow network registry.example.com:443 for claude-code`. In a pattern `*` stands for any characters.
import { CaissonError } from "@caisson/contract";
import { type ApprovalKind, approvalKinds, isApprovalKind, type Question } from "./approval.ts";

export interface ApprovalRule {
  allow: boolean;
  kind: ApprovalKind;
  pattern: string;
  /** Only for this kind of agent; empty for all. */
  agent: string;
  /** As it was written. */
  text: string;
}

const longestRule = 1024;

/** Reads one line; `where` names the file or setting in which it stands. */
export function parseRule(text: string, where: string): ApprovalRule {
  const words = text.trim().split(/\s+/);
  const [answer, kind, pattern, joint, agent = "", ...rest] = words;
  const wrong = (why: string) =>
    new CaissonError("CONFIG_INVALID", `${where}: ${JSON.stringify(text)} ${why}`);
  if (text.length > longestRule) throw wrong("is too long");
  if (answer !== "allow" && answer !== "deny") throw wrong("must begin with allow or deny");
  if (!isApprovalKind(kind)) throw wrong(`must name one of ${approvalKinds.join(", ")}`);
  if (!pattern) throw wrong("must say what for; `*` stands for any characters");
  if (rest.length > 0 || (joint !== undefined && (joint !== "for" || agent === "")))
    throw wrong("may only go on with `for AGENT`");
  return { allow: answer === "allow", kind, pattern, agent, text: words.join(" ") };
}

export function parseRules(texts: readonly string[], where: string): ApprovalRule[] {
  return texts.map((text) => parseRule(text, where));
}

/** The rule that answers a question: one that denies beats those that allow. */
export function ruleFor(
  rules: Iterable<ApprovalRule>,
  question: Pick<Question, "kind" | "subject" | "agent">,
): ApprovalRule | undefined {
  let found: ApprovalRule | undefined;
  for (const rule of rules) {
    if (rule.kind !== question.kind || (rule.agent !== "" && rule.agent !== question.agent)) continue;
    if (!matches(rule.pattern, question.subject)) continue;
    if (!rule.allow) return rule;
    found ??= rule;
  }
  return found;
}

/** The rule that gives everybody the same answer; undefined if the subject cannot stand in a rule. */
export function ruleOf(question: Pick<Question, "kind" | "subject">, allow: boolean): string | undefined {
  if (/[\s*]/.test(question.subject) || question.subject === "") return undefined;
  return `${allow ? "allow" : "deny"} ${question.kind} ${question.subject}`;
}

/** By pieces between the stars, so that no pattern takes more than one pass. */
export function matches(pattern: string, subject: string): boolean {
  const [first = "", ...pieces] = pattern.split("*");
  if (!subject.startsWith(first)) return false;
  const last = pieces.pop();
  if (last === undefined) return subject === first;
  let at = first.length;
  for (const piece of pieces) {
    const found = subject.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return subject.length - last.length >= at && subject.endsWith(last);
}
