import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import { matches, parseRule, parseRules, ruleFor, ruleOf } from "./rules.ts";

test("a star stands for any characters, anything else for itself", () => {
  const cases: [string, string, boolean][] = [
    ["example.com:443", "example.com:443", true],
    ["example.com:443", "example.com:4430", false],
    ["*.example.com:443", "a.example.com:443", true],
    ["*.example.com:443", "example.com:443", false],
    ["*.example.com:443", "a.example.com.evil.test:443", false],
    ["*", "anything", true],
    ["a*a", "a", false],
    ["a*b*c", "a1b2c", true],
    ["a*b*c", "acb", false],
    ["a.c", "abc", false],
  ];
  for (const [pattern, subject, expected] of cases)
    assert.equal(matches(pattern, subject), expected, `${pattern} ${subject}`);
});

test("a pattern of many stars costs one pass", () => {
  assert.equal(matches("*a".repeat(400), "a".repeat(399)), false);
});

test("a rule that denies beats those that allow, wherever it stands", () => {
  const rules = parseRules(
    ["allow network *", "deny network bad.test:*", "allow network only.test:1 for codex"],
    "here",
  );
  const find = (subject: string, agent = "") => ruleFor(rules.slice(1), { kind: "network", subject, agent });
  assert.equal(ruleFor(rules, { kind: "network", subject: "bad.test:1", agent: "" })?.allow, false);
  assert.equal(ruleFor(rules, { kind: "network", subject: "good.test:1", agent: "" })?.allow, true);
  assert.equal(ruleFor(rules, { kind: "apply", subject: "/p", agent: "" }), undefined);
  assert.equal(find("only.test:1", "codex")?.allow, true);
  assert.equal(find("only.test:1", "other"), undefined);
});

test("a line that is no rule is an error that names it", () => {
  for (const line of [
    "",
    "permit network *",
    "allow web *",
    "allow network",
    "allow network a b",
    "deny apply * for",
  ])
    assert.throws(
      () => parseRule(line, "the file"),
      (error) =>
        error instanceof CaissonError && error.code === "CONFIG_INVALID" && /the file/.test(error.message),
      line,
    );
});

test("what holds for always never holds for more than was asked", () => {
  assert.equal(ruleOf({ kind: "network", subject: "a.test:443" }, true), "allow network a.test:443");
  assert.equal(ruleOf({ kind: "network", subject: "*.test:443" }, true), undefined);
  assert.equal(ruleOf({ kind: "apply", subject: "/a b" }, true), undefined);
});
