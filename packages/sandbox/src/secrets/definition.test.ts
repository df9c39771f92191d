import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import { Binding, parseDefinition, parseDefinitions } from "./definition.ts";

test("a secret says where it comes from, who gets it and where it stands", () => {
  const [first, second] = parseDefinitions({
    A: { env: "A", hosts: ["a.test"] },
    B: { command: ["pass", "show"], hosts: ["*.b.test:8443"], inject: "body" },
  });
  assert.deepEqual(first, {
    name: "A",
    source: { env: "A" },
    hosts: ["a.test"],
    inject: ["header", "basic"],
  });
  assert.deepEqual(second!.inject, ["body"]);
});

test("what is wrong in a definition is an error that names the secret", () => {
  const wrong: [string, unknown, RegExp][] = [
    ["9A", { env: "A", hosts: ["a.test"] }, /variable's name/],
    ["A", { hosts: ["a.test"] }, /exactly one of/],
    ["A", { env: "A", file: "b", hosts: ["a.test"] }, /exactly one of/],
    ["A", { env: "A" }, /hosts/],
    ["A", { env: "A", hosts: [] }, /hosts/],
    ["A", { env: "A", hosts: ["a.test/path"] }, /no host/],
    ["A", { env: "A", hosts: ["*"] }, /no host/],
    ["A", { env: "A", hosts: ["a.test"], inject: ["cookie"] }, /inject/],
    ["A", { env: "A", hosts: ["a.test"], value: "x" }, /unknown key value/],
    ["A", { command: "pass show", hosts: ["a.test"] }, /list of words/],
  ];
  for (const [name, value, words] of wrong)
    assert.throws(
      () => parseDefinition(name, value),
      (error) => error instanceof CaissonError && words.test(error.message),
      JSON.stringify(value),
    );
});

test("only its own hosts get a secret, and without TLS only where the port was named", () => {
  const binding = new Binding({ hosts: ["a.test", "*.b.test:8443"] });
  assert.ok(binding.covers("a.test", 443, true));
  assert.ok(binding.covers("A.test.", 444, true));
  assert.ok(!binding.covers("a.test", 80, false));
  assert.ok(binding.covers("x.b.test", 8443, false));
  for (const name of ["b.test", "xa.test", "a.test.evil.test", "x.b.test.evil.test", "a.test\0.evil", ""])
    assert.ok(!binding.covers(name, 8443, true), name);
  assert.ok(!binding.covers("x.b.test", 443, true));
});
