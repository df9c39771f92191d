import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { ApplyOutcome, ChangeKind } from "@caisson/contract";
import { applyChanges, type Layer, listChanges, undoApply } from "./changes.ts";

const guest =
  process.env.CAISSON_GUEST ?? join(import.meta.dirname, "../../../../.caisson/bin/caisson-guest");
const root = mkdtempSync(join(tmpdir(), "caisson-changes-"));
after(() => rmSync(root, { recursive: true }));

let count = 0;

function layer(project: Record<string, string>): Layer & { write(path: string, text: string): void } {
  const dir = join(root, String(++count));
  for (const [path, text] of Object.entries(project)) put(join(dir, "project", path), text);
  mkdirSync(join(dir, "project"), { recursive: true });
  mkdirSync(join(dir, "layer/upper"), { recursive: true });
  return {
    guest,
    projectDir: join(dir, "project"),
    dir: join(dir, "layer"),
    isCopy: false,
    attachedAtMs: Date.now() + 100,
    uid: 0,
    gid: 0,
    write: (path, text) => put(join(dir, "layer/upper", path), text),
  };
}

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();

test("a diff has a patch that git takes and that gives the sandbox's version", async () => {
  const at = layer({ "a.txt": "one\ntwo\nthree\n", "b.txt": "same\n" });
  at.write("a.txt", "one\n2\nthree\nfour\n");
  at.write("new/c.txt", "hello\n");
  const changes = await collect(listChanges(at, { patch: true, paths: [] }));
  assert.deepEqual(
    changes.map((change) => [text(change.path), change.kind]),
    [
      ["a.txt", ChangeKind.MODIFIED],
      ["new", ChangeKind.ADDED],
      ["new/c.txt", ChangeKind.ADDED],
    ],
  );
  assert.deepEqual([changes[0]!.linesAdded, changes[0]!.linesRemoved], [2, 1]);
  const patch = changes.map((change) => change.patch).join("");
  execFileSync("git", ["apply", "--unsafe-paths", "-"], { cwd: at.projectDir, input: patch });
  assert.equal(readFileSync(join(at.projectDir, "a.txt"), "utf8"), "one\n2\nthree\nfour\n");
  assert.equal(readFileSync(join(at.projectDir, "new/c.txt"), "utf8"), "hello\n");
});

test("what would run code on the host is withheld unless it is named", async () => {
  const at = layer({ "a.txt": "a\n" });
  at.write("a.txt", "b\n");
  at.write(".git/hooks/pre-commit", "#!/bin/sh\n");
  at.write(".mcp.json", "{}");
  const first = await applyChanges(at, { paths: [], dryRun: false });
  assert.deepEqual(
    first.files.filter((file) => file.outcome === ApplyOutcome.WITHHELD).map((file) => text(file.path)),
    [".git/hooks/pre-commit", ".mcp.json"],
  );
  assert.equal(readFileSync(join(at.projectDir, "a.txt"), "utf8"), "b\n");
  assert.equal(statSync(join(at.projectDir, ".mcp.json"), { throwIfNoEntry: false }), undefined);
  await applyChanges(at, { paths: [".mcp.json"], dryRun: false });
  assert.equal(readFileSync(join(at.projectDir, ".mcp.json"), "utf8"), "{}");
  await undoApply(at, first.applyId);
  assert.equal(readFileSync(join(at.projectDir, "a.txt"), "utf8"), "a\n");
});

test("a dry run changes nothing, and globs choose", async () => {
  const at = layer({});
  at.write("src/a.ts", "a");
  at.write("src/deep/b.ts", "b");
  at.write("c.md", "c");
  const tried = await applyChanges(at, { paths: ["src/**/*.ts"], dryRun: true });
  assert.deepEqual(
    tried.files.map((file) => text(file.path)),
    ["src/a.ts", "src/deep/b.ts"],
  );
  assert.equal(statSync(join(at.projectDir, "src"), { throwIfNoEntry: false }), undefined);
});

test("changes on both sides are joined where git has what both came from, and refused where they overlap", async () => {
  const lines = Array.from({ length: 30 }, (_, i) => `line ${i}`);
  const at = layer({ "joined.txt": lines.join("\n"), "clash.txt": "one\n" });
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
      cwd: at.projectDir,
    });
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "base");
  at.attachedAtMs = Date.now() + 1000;
  at.write("joined.txt", lines.with(2, "sandbox").join("\n"));
  at.write("clash.txt", "sandbox\n");
  await new Promise((resolve) => setTimeout(resolve, 1100));
  put(join(at.projectDir, "joined.txt"), lines.with(25, "host").join("\n"));
  put(join(at.projectDir, "clash.txt"), "host\n");
  const { files } = await applyChanges(at, { paths: [], dryRun: false });
  const outcomes = Object.fromEntries(files.map((file) => [text(file.path), file.outcome]));
  assert.deepEqual(outcomes, { "joined.txt": ApplyOutcome.MERGED, "clash.txt": ApplyOutcome.CONFLICT });
  assert.equal(
    readFileSync(join(at.projectDir, "joined.txt"), "utf8"),
    lines.with(2, "sandbox").with(25, "host").join("\n"),
  );
  assert.equal(readFileSync(join(at.projectDir, "clash.txt"), "utf8"), "host\n");
});

test("a host commit made since the attachment is not taken for the base", async () => {
  const at = layer({ "file.txt": "a\nb\nc\nd\ne\nf\n" });
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
      cwd: at.projectDir,
    });
  at.attachedAtMs = Date.now();
  at.write("file.txt", "A\nb\nc\nd\ne\nf\n");
  await new Promise((resolve) => setTimeout(resolve, 1100));
  put(join(at.projectDir, "file.txt"), "a\nb\nc\nd\ne\nF\n");
  utimesSync(join(at.projectDir, "file.txt"), new Date(), new Date());
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "since");
  const { files } = await applyChanges(at, { paths: [], dryRun: false });
  assert.deepEqual(
    files.map((file) => file.outcome),
    [ApplyOutcome.CONFLICT],
  );
  assert.equal(readFileSync(join(at.projectDir, "file.txt"), "utf8"), "a\nb\nc\nd\ne\nF\n");
});
