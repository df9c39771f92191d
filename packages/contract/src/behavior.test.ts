// The page for people and the file for machines say the same.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { rules } from "./rules.ts";

const page = readFileSync(join(import.meta.dirname, "../../../spec/behavior.md"), "utf8");

const units: Record<string, Record<string, number>> = {
  bytes: { "": 1, bytes: 1, MiB: 2 ** 20 },
  ms: { ms: 1, s: 1000, h: 3_600_000 },
  s: { s: 1, h: 3600 },
  "": { "": 1, attempts: 1 },
};

function ruleAt(name: string): unknown {
  return name.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], rules);
}

test("each number in the page is the rule whose name stands behind it", () => {
  const found = [...page.matchAll(/([0-9]+) ?(MiB|bytes|ms|s|h|attempts)? \(`([a-z]+\.[a-z_]+)`\)/g)];
  assert.ok(found.length >= 22, `only ${found.length} numbers found`);
  for (const [text, number, unit = "", name] of found) {
    const rule = ruleAt(name!);
    if (typeof rule !== "number") continue;
    const kind = /_bytes$/.test(name!) ? "bytes" : (/_(ms|s)$/.exec(name!)?.[1] ?? "");
    const factor = units[kind]?.[unit];
    assert.ok(factor !== undefined, `${text}: the unit does not fit`);
    assert.equal(Number(number) * factor, rule, text);
  }
});

test("no rule about paths, sizes, times and retries is missing in the page", () => {
  for (const section of ["paths", "sizes", "times", "retry"] as const) {
    for (const name of Object.keys(rules[section])) {
      assert.ok(page.includes(`(\`${section}.${name}\`)`), `${section}.${name}`);
    }
  }
});

test("waits, jitter and the calls that need a key are as in the file", () => {
  const waits = rules.retry.waits_ms;
  assert.ok(page.includes(`waits of ${waits.slice(0, -1).join(", ")} and ${waits.at(-1)} ms (`));
  assert.ok(page.includes(`± ${rules.retry.jitter * 100} % (`));
  for (const method of rules.retry.only_with_key) assert.ok(page.includes(`\`${method}\``), method);
});

test("the table of errors, the reasons of an end and the telemetry names are complete", () => {
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| ([A-Z_]+) \| ([0-9]+) \|$/gm)].map((row) =>
    row.slice(1, 4).join(" "),
  );
  const expected = Object.entries(rules.errors).map(
    ([code, { status, http }]) => `${code} ${status} ${http}`,
  );
  assert.deepEqual(rows, expected);
  const names = [
    ...rules.end_reasons,
    ...rules.telemetry.attributes,
    ...Object.values(rules.telemetry.spans),
  ];
  for (const name of names) assert.ok(page.includes(`\`${name}\``), name);
});
