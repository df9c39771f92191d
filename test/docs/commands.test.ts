// No document names a command or an option that does not exist.
import assert from "node:assert/strict";
import { test } from "node:test";
import { rules } from "@caisson/contract";
import { callsIn, complaint } from "./support/command-line.ts";
import { documents, everything } from "./support/documents.ts";

test("every command and option that a document names exists", () => {
  const wrong: string[] = [];
  let seen = 0;
  for (const { path, fences, spans } of documents(everything)) {
    const code = [...fences.filter(({ language }) => language === "sh"), ...spans];
    for (const { line, text } of code) {
      for (const words of callsIn(text)) {
        seen++;
        const why = complaint(words);
        if (why) wrong.push(`${path}:${line}: ${why}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(seen > 100, `only ${seen} found`);
});

test("the next steps of errors name commands that exist", () => {
  for (const [code, { next }] of Object.entries(rules.errors)) {
    for (const [, span] of next.matchAll(/`([^`]+)`/g)) {
      for (const words of callsIn(span!)) assert.equal(complaint(words), undefined, code);
    }
  }
});

test("a command or option that is not there is noticed", () => {
  for (const call of [
    "caisson rnu x",
    "caisson keys make x",
    "caisson run --sesion x -- y",
    "caisson ls -Z",
  ]) {
    assert.notEqual(complaint(callsIn(call)[0]!), undefined, call);
  }
  assert.equal(complaint(callsIn("./caisson exec box tool --its-own-option")[0]!), undefined);
});
