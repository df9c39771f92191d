// Every file that a document names is there, and every link leads somewhere.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { root } from "../support/daemon.ts";
import { type Document, documents, everything } from "./support/documents.ts";

/** Names of things that are not in the repository: on a host, in a sandbox, in a project, in a module. */
const elsewhere =
  /^(~|\/|\$|\.\/|@|https?:|caisson\.|log\.db|daemon\.log|snapshot\.json|sandboxes\/|run\/daemon|output\/|link\.sock|objects|refs|application\/|text\/|[\d.]+\/\d+$)|[ *<>"'=(:…]|^\.[a-z]/;
const looksLikePath =
  /^[\w.-]+(\/[\w.{},-]+)+\/?$|^[\w.-]+\.(ts|rs|md|json|proto|sh|yaml|toml|c)$|^[A-Z]+\.md$|^[a-z-]+\/$/;

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
}).split("\n");

test("every path that a document names exists", () => {
  const missing: string[] = [];
  let seen = 0;
  for (const document of documents(everything)) {
    for (const { line, text } of document.spans) {
      if (elsewhere.test(text) || !looksLikePath.test(text)) continue;
      for (const path of braces(text)) {
        seen++;
        if (!isThere(document, path)) missing.push(`${document.path}:${line}: ${path}`);
      }
    }
  }
  assert.deepEqual(missing, []);
  assert.ok(seen > 80, `only ${seen} found`);
});

test("every link of a document leads to a file", () => {
  for (const { path, text } of documents(everything)) {
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?:|#)/.test(target!)) continue;
      assert.ok(existsSync(join(root, dirname(path), target!.split("#")[0]!)), `${path}: ${target}`);
    }
  }
});

test("the map of ARCHITECTURE.md has every package, and every package tells what it is", () => {
  const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  const packages = execFileSync("git", ["ls-files", "packages/*/package.json"], {
    cwd: root,
    encoding: "utf8",
  });
  for (const file of packages.trim().split("\n")) {
    const name = dirname(file).slice("packages/".length);
    assert.match(text, new RegExp(`\\b${name}\\b`), name);
    assert.ok(existsSync(join(root, "packages", name, "README.md")), `packages/${name}/README.md`);
  }
});

/** From the repository's root; or, shortened as texts do, somewhere in what the document is about. */
function isThere(document: Document, path: string): boolean {
  const wanted = path.replace(/\/$/, "");
  if (existsSync(join(root, wanted))) return true;
  const below = subject(document.path);
  return files.some((file) => file.startsWith(below) && `/${file}/`.includes(`/${wanted}/`));
}

function subject(path: string): string {
  if (path === "docs/wall.md") return "guest/src/wall/";
  if (path === "ARCHITECTURE.md") return "";
  return path.startsWith("packages/") ? `${path.split("/").slice(0, 2).join("/")}/` : `${dirname(path)}/`;
}

/** `a/{b,c}` is two. */
function braces(path: string): string[] {
  const [, before, inner, after] = /^(.*?)\{([^}]*)\}(.*)$/.exec(path) ?? [];
  return inner === undefined ? [path] : inner.split(",").flatMap((one) => braces(before + one + after));
}
