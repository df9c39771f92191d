import assert from "node:assert/strict";
import { test } from "node:test";
import { compareManifests } from "./manifest.ts";
import { withoutWithheld } from "./withheld.ts";

const before = new Map([
  ["above", "d755"],
  ["above/inner", "d755"],
  ["above/other", "1-644-a"],
  ["plain", "1-644-b"],
]);
const withheld = ["above/inner/secret", "token"];

function changes(now: Map<string, string>) {
  return compareManifests(before, withoutWithheld(now, before, withheld));
}

test("what is put in the place of something withheld is not fetched, nor what lies in it", () => {
  const now = new Map([
    ...before,
    ["token", "d755"],
    ["token/x", "1-644-c"],
    ["above/inner/secret", "1-644-c"],
  ]);
  assert.deepEqual(changes(now), { remove: [], fetch: [] });
});

test("directories above something withheld stay, whatever was done to them; what else was in them goes", () => {
  for (const done of [[], [["above", "3-777-link"]], [["above", "d755"]]] as [string, string][][]) {
    const now = new Map([...done, ["plain", "1-644-b"]] as [string, string][]);
    assert.deepEqual(changes(now), { remove: ["above/other"], fetch: [] });
  }
});

test("other changes count", () => {
  const now = new Map([...before, ["token2", "1-644-c"], ["above/inner/other", "1-644-c"]]);
  now.delete("plain");
  assert.deepEqual(changes(now), { remove: ["plain"], fetch: ["above/inner/other", "token2"] });
});
