// diff, apply, undo and discard, and what `run` says about changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeKind } from "@caisson/contract";
import { Cli } from "../testing/cli.ts";

const path = (text: string) => Buffer.from(text);

/** A command line whose last run in the current directory changed something. */
async function changed(): Promise<{ cli: Cli; id: string }> {
  const cli = new Cli();
  const { io } = await cli.run(["create"]);
  const id = /sb_\w+/.exec(io.out)![0];
  cli.daemon.changes(id).list = [
    {
      path: path("src/a.ts"),
      kind: ChangeKind.MODIFIED,
      type: "file",
      patch:
        "diff --git a/src/a.ts b/src/a.ts\n--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1 +1 @@\n-old\n+new\u001b[31m\n",
    },
    { path: path("new\nname"), kind: ChangeKind.ADDED, type: "file" },
    { path: path("to"), from: path("was"), kind: ChangeKind.RENAMED, type: "file" },
    {
      path: path(".vscode"),
      kind: ChangeKind.ADDED,
      type: "directory",
      withheld: "an editor may run what it names",
    },
    {
      path: path(".vscode/tasks.json"),
      kind: ChangeKind.ADDED,
      type: "file",
      withheld: "an editor may run what it names",
    },
  ];
  return { cli, id };
}

test("diff finds the last run of this directory and prints its patches", async () => {
  const { cli } = await changed();
  const { code, io } = await cli.run(["diff"]);
  assert.equal(code, 0);
  assert.match(io.out, /^diff --git a\/src\/a\.ts/);
  assert.match(io.out, /\+new\u001b\[31m\n/, "a patch in a file is what it is");
  const shown = (await cli.run(["diff"], { terminals: ["stdout"] })).io.out;
  assert.doesNotMatch(shown, /\u001b\[31m/, "on a terminal a sandbox's escapes are neutralised");
});

test("diff --names has one line for each file, whatever its name holds", async () => {
  const { cli } = await changed();
  const { io } = await cli.run(["diff", "--names"]);
  assert.deepEqual(io.out.trimEnd().split("\n"), [
    "M src/a.ts",
    "A new\\nname",
    "R was → to",
    "A .vscode/tasks.json  (withheld: an editor may run what it names)",
  ]);
});

test("apply says what it left out and how many it applied, and fails on a conflict", async () => {
  const { cli, id } = await changed();
  const tried = await cli.run(["apply", "--dry-run"]);
  assert.match(tried.io.out, /3 files would be applied\n$/);
  assert.equal(cli.daemon.changes(id).list.length, 5);
  const { code, io } = await cli.run(["apply"]);
  assert.equal(code, 0);
  assert.match(io.out, /^withheld \.vscode\/tasks\.json {2}\(an editor may run what it names\)$/m);
  assert.match(io.out, /3 files applied\n$/);
  cli.daemon.changes(id).list = [{ path: path("b"), kind: ChangeKind.MODIFIED, conflict: true }];
  const second = await cli.run(["apply", id]);
  assert.equal(second.code, 1);
  assert.match(second.io.out, /^conflict b /m);
});

test("apply passes patterns on, so that a file which is withheld can be named", async () => {
  const { cli } = await changed();
  const { io } = await cli.run(["apply", "--path", ".vscode/tasks.json", "-p", "src/**", "--json"]);
  const [request] = cli.requests<{ paths: string[] }>("applyWorkspace");
  assert.deepEqual(request!.paths, [".vscode/tasks.json", "src/**"]);
  assert.equal(JSON.parse(io.out).withheld, 1);
});

test("undo takes the last apply of this directory back", async () => {
  const { cli, id } = await changed();
  await cli.run(["apply"]);
  // A later run that nobody applied is not in the way.
  await cli.run(["create"]);
  const { code, io } = await cli.run(["undo"]);
  assert.deepEqual([code, io.out], [0, "3 changes taken back\n"]);
  assert.equal(cli.daemon.changes(id).list.length, 5);
  const again = await cli.run(["undo"]);
  assert.equal(again.code, 1);
  assert.match(again.io.err, /has been applied/);
});

test("discard throws an ended sandbox's changes away and refuses a living one's", async () => {
  const { cli, id } = await changed();
  assert.equal((await cli.run(["discard"])).code, 1);
  await cli.run(["rm", id]);
  const { code, io } = await cli.run(["discard"]);
  assert.equal(code, 0);
  assert.match(io.out, /freed/);
  assert.match((await cli.run(["diff"])).io.err, /nothing that ran in this directory/);
});
