import assert from "node:assert/strict";
import { test } from "node:test";
import { Cli } from "../testing/cli.ts";

test("a value comes by a pipe and is never printed", async () => {
  const cli = new Cli();
  const { code, io } = await cli.run(["secret", "set", "TOKEN", "--host", "a.test", "--host", "*.b.test"], {
    stdin: "the-value\n",
  });
  assert.equal(code, 0, io.err);
  assert.equal(cli.daemon.secrets.get("TOKEN")!.value, "the-value");
  const listed = await cli.run(["secret", "ls"]);
  assert.match(listed.io.out, /TOKEN +a\.test, \*\.b\.test/);
  assert.ok(!`${io.out}${io.err}${listed.io.out}`.includes("the-value"));
  assert.equal((await cli.run(["secret", "rm", "TOKEN"])).code, 0);
  assert.equal(cli.daemon.secrets.size, 0);
});

test("a reference is handed over as it is, and nothing is read", async () => {
  const cli = new Cli();
  const { io } = await cli.run([
    "secret",
    "set",
    "A",
    "--host",
    "a.test",
    "--command",
    "pass",
    "--command",
    "show",
  ]);
  assert.deepEqual((cli.daemon.secrets.get("A")!.value as { argv: string[] }).argv, ["pass", "show"]);
  assert.equal(io.stdinAsked, 0);
});

test("a file is named by its whole path", async () => {
  const cli = new Cli();
  await cli.run(["secret", "set", "A", "--host", "a.test", "--file", "../token"]);
  assert.equal(cli.daemon.secrets.get("A")!.value, "/srv/token");
  await cli.run(["secret", "set", "A", "--host", "a.test", "--file", "~/token"]);
  assert.equal(cli.daemon.secrets.get("A")!.value, "~/token");
});

test("without hosts, or typed at a terminal, it is a mistake of usage", async () => {
  const cli = new Cli();
  assert.equal((await cli.run(["secret", "set", "A"], { stdin: "x" })).code, 2);
  assert.equal((await cli.run(["secret", "set", "A", "--host", "a.test"], { terminals: ["stdin"] })).code, 2);
});

test("a sandbox is given secrets by name", async () => {
  const cli = new Cli();
  await cli.run(["run", "--secret", "A", "--secret", "B", "--", "true"]);
  assert.deepEqual(cli.requests<{ spec: { secrets: string[] } }>("runStream")[0]!.spec.secrets, ["A", "B"]);
});
