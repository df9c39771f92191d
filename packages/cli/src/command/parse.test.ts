import assert from "node:assert/strict";
import { test } from "node:test";
import { defineCommand } from "./command.ts";
import { parse } from "./parse.ts";
import { closest } from "./suggest.ts";
import { UsageError } from "./usage-error.ts";

const command = defineCommand({
  name: "try",
  summary: "",
  positionals: [
    { name: "BOX", summary: "" },
    { name: "COMMAND", summary: "", rest: true, command: true, optional: true },
  ],
  options: {
    follow: { kind: "flag", short: "f", summary: "" },
    tty: { kind: "flag", short: "t", summary: "" },
    name: { kind: "text", short: "n", summary: "" },
    env: { kind: "text", short: "e", many: true, summary: "" },
    count: { kind: "int", summary: "" },
    wait: { kind: "duration", summary: "" },
    memory: { kind: "size", summary: "" },
    colour: { kind: "choice", choices: ["red", "blue"], summary: "" },
  },
});

const options = (...words: string[]) => parse(command, ["box", ...words]).options;

test("options are read in every spelling that people know", () => {
  assert.equal(options("--name", "a b").name, "a b");
  assert.equal(options("--name=").name, "");
  assert.equal(options("--name=x=y").name, "x=y");
  assert.equal(options("-n", "x").name, "x");
  assert.equal(options("-nx").name, "x");
  assert.deepEqual([options("-ft").follow, options("-ft").tty], [true, true]);
  assert.deepEqual(options("-ftn", "x").name, "x");
  assert.deepEqual(options("-e", "A=1", "--env=B").env, ["A=1", "B"]);
  assert.equal(options("--name", "-x").name, "-x");
});

test("values have the type of their kind", () => {
  assert.equal(options("--count", "12").count, 12);
  assert.equal(options("--wait", "1h30m").wait, 5_400_000);
  assert.equal(options("--wait", "90").wait, 90_000);
  assert.equal(options("--wait=250ms").wait, 250);
  assert.equal(options("--memory", "1.5g").memory, 1.5 * 2 ** 30);
  assert.equal(options("--memory", "512MiB").memory, 512 * 2 ** 20);
  assert.equal(options("--colour", "red").colour, "red");
  assert.deepEqual([options().count, options().follow, options().env], [undefined, false, []]);
});

test("a command's own options are not ours", () => {
  assert.deepEqual(parse(command, ["-f", "box", "ls", "-f", "--name"]).positionals, [
    "box",
    "ls",
    "-f",
    "--name",
  ]);
  assert.deepEqual(parse(command, ["box", "-f", "--", "-t", "--", "x"]).positionals, [
    "box",
    "-t",
    "--",
    "x",
  ]);
  assert.equal(parse(command, ["box", "ls", "-f"]).options.follow, false);
  assert.deepEqual(parse(command, ["box", "-"]).positionals, ["box", "-"]);
});

test("what is wrong is said, with a suggestion where there is one", () => {
  const refusal = (words: string[], pattern: RegExp) =>
    assert.throws(
      () => parse(command, words),
      (thrown) => thrown instanceof UsageError && pattern.test(thrown.message),
    );
  refusal(["box", "--folow"], /no option --folow; did you mean --follow\?/);
  refusal(["box", "-x"], /no option -x/);
  refusal(["box", "--name"], /--name needs a value/);
  refusal(["box", "--follow=1"], /takes no value/);
  refusal(["box", "--count", "many"], /whole number/);
  refusal(["box", "--wait", "soon"], /not a time/);
  refusal(["box", "--memory", "much"], /not a size/);
  refusal(["box", "--colour", "green"], /not one of red, blue/);
  refusal([], /BOX is missing/);
  refusal(["box", "--__proto__", "x"], /no option/);
  refusal(["box", "--constructor"], /no option/);
});

test("too many words are refused where a command takes none", () => {
  const plain = defineCommand({ name: "plain", summary: "" });
  assert.throws(() => parse(plain, ["x"]), /one word too many/);
});

test("only what is near is suggested", () => {
  assert.equal(closest("exce", ["exec", "events"]), "exec");
  assert.equal(closest("lgos", ["logs", "ls"]), "logs");
  assert.equal(closest("compl", ["completion", "cp"]), "completion");
  assert.equal(closest("zzzzzz", ["exec", "events"]), undefined);
  assert.equal(closest("x", ["exec", "rm"]), undefined);
});
