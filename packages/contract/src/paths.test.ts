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

test("relative paths begin at the working directory, absolute ones at the root", () => {
  assert.equal(codeOf("a/b"), "/work/a/b");
  assert.equal(codeOf("."), "/work");
  assert.equal(codeOf("/"), "/");
  assert.equal(codeOf("/a//b/./c/"), "/a/b/c");
  assert.equal(codeOf("../x"), "/x");
  assert.equal(codeOf("a/../b"), "/work/b");
  assert.equal(codeOf("..."), "/work/...");
});

test("climbing above the root is refused, also when it would come back", () => {
  assert.equal(codeOf("/.."), "PATH_LEAVES_ROOT");
  assert.equal(codeOf("../.."), "PATH_LEAVES_ROOT");
  assert.equal(codeOf("../../work/a"), "PATH_LEAVES_ROOT");
});

test("malformed paths are refused as such", () => {
  for (const path of [
    "",
    "a\0b",
    "a\nb",
    "a\u007f",
    "a\u009b",
    "\ud800",
    `/${"x".repeat(256)}`,
    "a/".repeat(2049),
  ]) {
    assert.equal(codeOf(path), "INVALID_PATH", JSON.stringify(path.slice(0, 20)));
  }
  assert.equal(codeOf("é".repeat(127)), `/work/${"é".repeat(127)}`);
  assert.equal(codeOf("é".repeat(128)), "INVALID_PATH");
  // Each is short enough alone, together they are not.
  assert.equal(codeOf("a/".repeat(1024), `/${"b/".repeat(1100)}`), "INVALID_PATH");
});

test("lookalikes of dots and slashes are ordinary characters", () => {
  for (const path of ["%2e%2e/x", "..\\x", "\uff0e\uff0e/x", "\u2025/x", "a\u2215b"]) {
    assert.equal(codeOf(path), `/work/${path}`);
  }
});

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
