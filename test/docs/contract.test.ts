// Nothing is in the contract that nobody reads, and nothing happens that the specification does not list.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { DescMessage, DescService } from "@bufbuild/protobuf";
import * as contract from "@caisson/contract";
import { root } from "../support/daemon.ts";

const text = (...patterns: string[]) =>
  globSync(patterns, { cwd: root, exclude: (name) => /node_modules|\/gen$/.test(name) })
    .map((path) => readFileSync(join(root, path), "utf8"))
    .join("\n");

const isTest = /\.test\.ts$|\/testing\//;
const served = globSync("packages/{api,sandbox,daemon,store}/src/**/*.ts", { cwd: root })
  .filter((path) => !isTest.test(path))
  .map((path) => readFileSync(join(root, path), "utf8"))
  .join("\n");

/** Half a minute of writing and not reading brings it about; that was done by hand. */
const byHand = new Set(["caisson.v1.FileEvent.overflow"]);

/** Every message that a call takes or gives, with those inside it. */
function messages(): DescMessage[] {
  const found = new Map<string, DescMessage>();
  const visit = (message: DescMessage) => {
    if (found.has(message.typeName) || message.typeName.startsWith("google.")) return;
    found.set(message.typeName, message);
    for (const { message: inner } of message.fields) if (inner) visit(inner);
  };
  for (const each of Object.values(contract)) {
    if (typeof each !== "object" || each === null || !("kind" in each) || each.kind !== "service") continue;
    for (const { input, output } of (each as unknown as DescService).methods) {
      visit(input);
      visit(output);
    }
  }
  return [...found.values()];
}

test("every field of the contract is named by what serves it, and by a test", () => {
  const tests = text(
    "packages/**/*.test.ts",
    "packages/api/test/*.ts",
    "test/**/*.ts",
    "conformance/**/*.{ts,json}",
  );
  const named = (words: string, name: string) => new RegExp(`\\b${name}\\b`).test(words);
  const found = messages();
  assert.ok(found.length > 100);
  const unread: string[] = [];
  const untried: string[] = [];
  for (const { typeName, fields } of found) {
    for (const { name, localName } of fields) {
      if (!named(served, localName)) unread.push(`${typeName}.${name}`);
      const isTried = named(tests, localName) || named(tests, name) || byHand.has(`${typeName}.${name}`);
      if (!isTried) untried.push(`${typeName}.${name}`);
    }
  }
  assert.deepEqual({ unread, untried }, { unread: [], untried: [] });
});

test("spec/behavior.md lists every type of event", () => {
  const types = new Set([...served.matchAll(/type: "([a-z]+\.[a-z_]+)"/g)].map(([, type]) => type!));
  assert.ok(types.size > 30);
  const listed = readFileSync(join(root, "spec/behavior.md"), "utf8");
  assert.deepEqual(
    [...types].filter((type) => !listed.includes(`\`${type}\``)),
    [],
  );
});
