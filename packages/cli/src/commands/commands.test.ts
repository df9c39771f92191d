import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { entries } from "../command/completion.ts";
import { parse } from "../command/parse.ts";
import { reference, reservedOptions } from "../command/reference.ts";
import { Cli } from "../testing/cli.ts";
import { loadGroups } from "./table.ts";

const all = entries((await loadGroups()).flatMap(({ commands }) => commands));

test("every command has help, a summary and options that do not clash", async () => {
  for (const { path, command } of all) {
    const { code, io } = await new Cli().run([...path, "--help"]);
    assert.equal(code, 0, path.join(" "));
    assert.ok(io.out.startsWith(command.summary), path.join(" "));
    assert.match(command.summary, /^[A-Z].*[^.]$/);
    const shorts = Object.values(command.options ?? {}).flatMap(({ short }) => short ?? []);
    assert.equal(new Set(shorts).size, shorts.length, path.join(" "));
    for (const name of Object.keys(command.options ?? {})) assert.ok(!reservedOptions.includes(name));
    assert.ok(command.run ?? command.commands, path.join(" "));
  }
});

/** The words of each `caisson …` in a line of shell, also of those in a substitution. */
function commandLines(line: string): string[][] {
  const inner = [...line.matchAll(/[$<]\(([^)]*)\)/g)].map(([, words]) => words!);
  const outer = line.replace(/[$<]\([^)]*\)/g, "X");
  return [outer, ...inner].flatMap((part) =>
    [...part.matchAll(/(?:^|\| ?)caisson ([^|>]*)/g)].map(([, rest]) =>
      [...rest!.matchAll(/'([^']*)'|[^\s']+/g)].map(([word, quoted]) => quoted ?? word),
    ),
  );
}

function understand(line: string): void {
  const lines = commandLines(line);
  assert.ok(lines.length > 0, line);
  for (const words of lines) {
    const found = all.findLast(({ path }) => path.every((word, index) => words[index] === word));
    assert.ok(found, line);
    assert.doesNotThrow(() => parse(found.command, words.slice(found.path.length)), line);
  }
}

test("every example is a command line that is understood", () => {
  for (const { command } of all) for (const { line } of command.examples ?? []) understand(line);
  const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
  const [, examples] = /```sh\n(.*?)```/s.exec(readme)!;
  for (const line of examples!.trim().split("\n")) understand(line.replace(/ +#.*/, ""));
});

test("docs/cli.md is what the table says", async () => {
  const file = join(import.meta.dirname, "../../../../docs/cli.md");
  assert.equal(readFileSync(file, "utf8"), reference(await loadGroups()));
});

test("completions name every command, and bash completes with its own", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { io, code } = await new Cli().run(["completion", shell]);
    assert.equal(code, 0);
    for (const { path } of all) assert.ok(io.out.includes(path.at(-1)!), `${shell}: ${path.join(" ")}`);
  }
  const { io } = await new Cli().run(["completion", "bash"]);
  execFileSync("bash", ["-n"], { input: io.out });
  const complete = (...words: string[]) =>
    execFileSync(
      "bash",
      [
        "-c",
        `${io.out}\nCOMP_WORDS=(caisson "$@"); COMP_CWORD=$#; _caisson; echo "\${COMPREPLY[*]}"`,
        "-",
        ...words,
      ],
      {
        encoding: "utf8",
      },
    ).trim();
  assert.equal(complete("ke"), "keys");
  assert.equal(complete("keys", "re"), "revoke");
  assert.equal(complete("run", "--time"), "--timeout");
  assert.equal(complete("completion", "z"), "zsh");
});

test("typos get a suggestion", async () => {
  const { code, io } = await new Cli().run(["rnu", "--", "true"]);
  assert.equal(code, 2);
  assert.equal(io.err, "caisson: there is no command rnu; did you mean run?\nSee `caisson --help`.\n");
  assert.match((await new Cli().run(["keys", "crate"])).io.err, /did you mean keys create\?/);
  assert.match((await new Cli().run(["zzzzz"])).io.err, /caisson help/);
});

test("colours only on a terminal that wants them", async () => {
  const terminals = ["stdout", "stderr"] as const;
  assert.ok((await new Cli().run(["help"], { terminals })).io.out.includes("\u001b["));
  assert.ok(!(await new Cli().run(["help"])).io.out.includes("\u001b["));
  assert.ok(
    !(await new Cli().run(["help"], { terminals, env: { NO_COLOR: "1" } })).io.out.includes("\u001b["),
  );
  assert.ok(
    !(await new Cli().run(["help"], { terminals, env: { TERM: "dumb" } })).io.out.includes("\u001b["),
  );
});

test("restore makes a sandbox from a snapshot, under a name if one is given", async () => {
  const cli = new Cli();
  const made = await cli.run(["restore", "sn_1", "--label", "a=b"]);
  assert.match(made.io.out, /^sb_\w+\n$/);
  const [created] = cli.requests<{ spec: { snapshot: string; labels: unknown } }>("createSandbox");
  assert.deepEqual([created!.spec.snapshot, created!.spec.labels], ["sn_1", { a: "b" }]);
  await cli.run(["restore", "--session", "again", "sn_1"]);
  const [opened] = cli.requests<{ name: string; spec: { snapshot: string } }>("openSession");
  assert.deepEqual([opened!.name, opened!.spec.snapshot], ["again", "sn_1"]);
  const twice = await cli.run(["restore", "--session", "Again", "sn_1"]);
  assert.equal(twice.code, 1);
  assert.match(twice.io.err, /the session Again lives already: nothing was restored/);
});

test("a new key's reach is said where it is not everything", async () => {
  const cli = new Cli();
  assert.match((await cli.run(["keys", "create", "one"])).io.err, /only what is made with it/);
  const wide = await cli.run(["keys", "create", "two", "--scope", "read", "--scope", "all"]);
  assert.doesNotMatch(wide.io.err, /only what is made with it/);
});

test("--json prints JSON, whatever the command", async () => {
  const cli = new Cli();
  await cli.run(["create", "-s", "work", "--label", "a=b"]);
  await cli.run(["exec", "work", "true"]);
  await cli.run(["keys", "create", "ci", "--scope", "read"]);
  await cli.run(["files", "write", "work", "/f"], { stdin: "x" });
  const lines = [
    "ls",
    "ls --all --label a=b",
    "ps",
    "ps work --all",
    "stats work",
    "extend work --idle-ttl 2h",
    "session ls",
    "files ls work /",
    "files stat work /f",
    "files cat work /f",
    "files mkdir work /d",
    "files mv work /f /g",
    "files rm work /g",
    "events",
    "audit verify",
    "df",
    "prune",
    "doctor",
    "profile ls",
    "profile show moderate",
    "config show",
    "config trust",
    "keys ls",
    "keys revoke ci",
    "daemon status",
    "daemon start",
    "openapi",
    "version",
    "completion bash",
    "help",
    "help run",
    "rm work",
  ];
  for (const line of lines) {
    const { io } = await cli.run([...line.split(" "), "--json"]);
    assert.equal(io.err, "", line);
    for (const document of line === "events" ? io.out.trim().split("\n") : [io.out]) JSON.parse(document);
  }
});

test("tables show what there is, with names made harmless", async () => {
  const cli = new Cli();
  await cli.run(["create", "--workspace", "/srv/\u001b[2J"]);
  const { io } = await cli.run(["ls"], { terminals: ["stdout"], env: { NO_COLOR: "1" } });
  assert.match(io.out, /^BOX +SESSION +STATE/);
  assert.match(io.out, /ready +container\/fake +moderate/);
  assert.ok(io.out.includes("/srv/^[[2J"));
  const { io: doctor, code } = await cli.run(["doctor"]);
  assert.equal(code, 1);
  assert.match(doctor.out, /problem +landlock: not in this kernel\n +apt install/);
  assert.match((await cli.run(["profile", "show", "moderate"])).io.out, /network +off +no network at all/);
  assert.match((await cli.run(["profile", "show", "modrate"])).io.err, /did you mean moderate/);
});

test("files are written from input and printed exactly", async () => {
  const cli = new Cli();
  await cli.run(["create", "-s", "work"]);
  const bytes = Buffer.from([0, 1, 255, 27]);
  assert.equal((await cli.run(["files", "write", "work", "/f", "--mode", "600"], { stdin: bytes })).code, 0);
  assert.deepEqual((await cli.run(["files", "cat", "work", "/f"])).io.outBytes, bytes);
  assert.match((await cli.run(["files", "ls", "work", "/"])).io.out, /^-0600 +4 B +f\n$/);
  assert.equal((await cli.run(["files", "write", "work", "/f", "--if-match", "-"], { stdin: "" })).code, 1);
  assert.equal((await cli.run(["files", "rm", "work", "/none"])).code, 1);
  assert.match((await cli.run(["files", "watch", "work", "/"])).io.out, /^ready\ncreated new\n$/);
});

test("the daemon is stopped and restarted, but not twice in a row", async () => {
  const cli = new Cli();
  await cli.run(["daemon", "stop"]);
  await cli.run(["daemon", "restart"]);
  assert.deepEqual(cli.told, { stopped: 1, restarted: 1 });
  cli.startedAt = new Date();
  const { io } = await cli.run(["daemon", "restart"]);
  assert.deepEqual(cli.told, { stopped: 1, restarted: 1 });
  assert.match(io.out, /running \(pid 42\)/);
  assert.equal((await cli.run(["daemon", "logs", "-n", "5"])).io.out, "5 lines\n");
});

test("rm goes on after a box that is not there", async () => {
  const cli = new Cli();
  const id = (await cli.run(["create"])).io.out.trim();
  const { code, io } = await cli.run(["rm", "sb_none", id]);
  assert.equal(code, 1);
  assert.equal(io.out, `${id}\n`);
  assert.match(io.err, /no sandbox sb_none/);
  assert.equal((await cli.run(["rm", "-f", "sb_none"])).code, 0);
});

test("what agents keep is freed only when that is said", async () => {
  const cli = new Cli();
  await cli.run(["prune"]);
  await cli.run(["prune", "--agents"]);
  assert.deepEqual(
    cli.requests<{ agents: boolean }>("prune").map(({ agents }) => agents),
    [false, true],
  );
});
