// Single paths are in conformance/vectors/paths.json, for every language.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "./errors.ts";
import { resolvePath } from "./paths.ts";

function codeOf(path: string, workdir = "/work"): string {
  try {
    return resolvePath(path, workdir);
  } catch (thrown) {
    assert.ok(thrown instanceof CaissonError);
    return thrown.code;
  }
}

test("whatever the path, the answer is a normal absolute path or an error of the table", () => {
  const pieces = ["..", ".", "", "a", "b c", "ü", "...", "\0", "x".repeat(255), "x".repeat(256), "~", "*"];
  let state = 3;
  const random = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let round = 0; round < 20_000; round++) {
    const path =
      (random(2) ? "/" : "") +
      Array.from({ length: random(8) }, () => pieces[random(pieces.length)]).join("/");
    const result = codeOf(path, "/w/d");
    if (result === "INVALID_PATH" || result === "PATH_LEAVES_ROOT") continue;
    assert.match(result, /^\//);
    assert.ok(
      !result
        .slice(1)
        .split("/")
        .some((part) => part === ".." || part === "."),
      result,
    );
    assert.ok(result === "/" || !(result.includes("//") || result.endsWith("/")), result);
    assert.equal(codeOf(result), result, "resolving again changes nothing");
  }
});
