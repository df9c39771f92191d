import assert from "node:assert/strict";
import { test } from "node:test";
import { Cli } from "../testing/cli.ts";

type Request = {
  spec?: { workspace?: { dir: string; mode: number }; labels: Record<string, string>; limits?: object };
  command: { argv: string[]; env: Record<string, string>; keepStdin: boolean; cwd: string };
};

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

test("a run is one call, and one that asks what was changed where something may have been", async () => {
  const cli = new Cli();
  const { code, io } = await cli.run(["run", "--", "echo", "hello"]);
  assert.equal(code, 0);
  assert.equal(io.out, "hello\n");
  assert.equal(io.err, "");
  await cli.run(["run", "--", "touch", "file"]);
  assert.deepEqual(
    cli.daemon.calls.map(({ method }) => method),
    ["runStream", "runStream", "diffWorkspace"],
  );
  const [request] = cli.requests<Request>("runStream");
  assert.deepEqual(request!.command.argv, ["echo", "hello"]);
  assert.equal(request!.spec?.workspace?.dir, "/srv/project");
  assert.equal(io.listeners, 0);
});

test("an exec is exactly one call", async () => {
  const cli = new Cli();
  await cli.run(["create", "--session", "work"]);
  cli.daemon.calls.length = 0;
  assert.equal((await cli.run(["exec", "work", "--", "true"])).code, 0);
  assert.deepEqual(
    cli.daemon.calls.map(({ method }) => method),
    ["startProcess"],
  );
});

test("output goes where it belongs, byte for byte", async () => {
  const cli = new Cli();
  assert.equal((await cli.run(["run", "complain", "no"])).io.err, "no\n");
  const { io } = await cli.run(["run", "bytes", "00ff1b5b80"]);
  assert.deepEqual([...io.outBytes], [0, 255, 0x1b, 0x5b, 0x80]);
});

test("on a terminal a sandbox cannot send escapes, in an interactive session it can", async () => {
  const cli = new Cli();
  const terminals = ["stdin", "stdout", "stderr"] as const;
  assert.equal((await cli.run(["run", "bytes", "1b5b316d41"], { terminals })).io.out, "^[[1mA");
  const { io } = await cli.run(["run", "-t", "bytes", "1b5b316d41"], { terminals });
  assert.equal(io.out, "\u001b[1mA");
  assert.deepEqual(io.raw, [true, false]);
});

test("exit codes are passed through, our own are Docker's", async () => {
  const cli = new Cli();
  const code = async (...words: string[]) => (await cli.run(words)).code;
  assert.equal(await code("run", "exit", "7"), 7);
  assert.equal(await code("run", "false"), 1);
  assert.equal(await code("run", "nonsense"), 127);
  assert.equal(await code("exec", "sb_none", "true"), 125);
  assert.equal(await code("run", "--tier", "none", "true"), 125);
  assert.equal(await code("run"), 125);
  assert.equal(await code("ls", "--nonsense"), 2);
  assert.equal(await code("stats", "sb_none"), 1);
});

test("piped input reaches the command, a terminal's only on request", async () => {
  const cli = new Cli();
  const { io } = await cli.run(["run", "cat"], { stdin: Buffer.from([1, 0, 255]) });
  assert.deepEqual([...io.outBytes], [1, 0, 255]);
  const untouched = await cli.run(["run", "cat"], { terminals: ["stdin"] });
  assert.equal(untouched.io.stdinAsked, 0);
  const empty = await cli.run(["run", "cat"]);
  assert.equal(empty.io.stdinAsked, 0);
  assert.deepEqual(
    cli.requests<Request>("runStream").map(({ command }) => command.keepStdin),
    [true, false, false],
  );
});

test("a terminal needs a terminal", async () => {
  const { code, io } = await new Cli().run(["run", "-it", "cat"], { stdin: "x" });
  assert.equal(code, 125);
  assert.match(io.err, /--tty needs a terminal/);
});

test("the terminal's size follows", async () => {
  const cli = new Cli();
  let end = () => {};
  async function* typed() {
    await new Promise<void>((resolve) => {
      end = resolve;
    });
    yield Buffer.from("\u0004");
  }
  const { io, done } = await cli.start(["run", "-it", "size"], {
    terminals: ["stdin", "stdout"],
    size: { columns: 100, rows: 30 },
    stdin: typed(),
  });
  await until(() => io.out.includes("100x30"));
  io.resize({ columns: 90, rows: 20 });
  await until(() => io.out.includes("90x20"));
  end();
  assert.equal(await done, 0);
  assert.deepEqual(io.raw, [true, false]);
});

test("signals are forwarded, a second one kills", async () => {
  const cli = new Cli();
  const first = await cli.start(["run", "wait"]);
  await until(() => first.io.out === "ready\n");
  first.io.signal("SIGINT");
  assert.equal(await first.done, 130);
  const second = await cli.start(["run", "stubborn"]);
  await until(() => second.io.out === "ready\n");
  second.io.signal("SIGTERM");
  second.io.signal("SIGTERM");
  assert.equal(await second.done, 137);
  assert.deepEqual([...cli.daemon.processes.values()].flat()[1]!.signals, ["SIGTERM", "SIGKILL"]);
});

test("what was started ends with a caller that vanishes", async () => {
  const cli = new Cli();
  const { io, done } = await cli.start(["run", "wait"]);
  await until(() => io.out === "ready\n");
  io.vanish();
  assert.equal(await done, 143);
  const early = await cli.start(["run", "wait"]);
  early.io.vanish();
  assert.equal(await early.done, 129);
  await until(() => [...cli.daemon.processes.values()].flat()[1]?.running === false);
  const impatient = await cli.start(["run", "wait"]);
  await until(() => impatient.io.listeners > 0);
  impatient.io.signal("SIGINT");
  assert.equal(await impatient.done, 130);
  await until(() => [...cli.daemon.processes.values()].flat()[2]?.running === false);
});

test("variables are set, passed on and read from files", async () => {
  const cli = new Cli();
  const words = ["run", "--env", "A=1", "-e", "TOKEN", "-e", "MISSING", "--env-file", "vars", "env"];
  const { io } = await cli.run(words, {
    callerEnv: { TOKEN: "secret", OTHER: "x" },
    files: { vars: "# note\nB=two words\n\nA=0\n" },
  });
  assert.deepEqual(io.out.trim().split("\n").sort(), ["A=1", "B=two words", "TOKEN=secret"]);
  const bad = await cli.run(["run", "--env-file", "none", "env"]);
  assert.equal(bad.code, 125);
  assert.match(bad.io.err, /cannot read none: no such file/);
});

test("no project is attached where it would be refused, and one line says so", async () => {
  const cli = new Cli();
  for (const cwd of ["/", "/home/user", "/home", ""]) {
    const { code, io } = await cli.run(["run", "true"], { cwd });
    assert.equal(code, 0);
    assert.match(io.err, /^caisson: no project is attached: .*\n$/);
  }
  assert.ok(cli.requests<Request>("runStream").every(({ spec }) => spec?.workspace === undefined));
  const { io } = await cli.run(["run", "--no-workspace", "true"], { cwd: "/" });
  assert.equal(io.err, "");
  cli.sharesFiles = false;
  assert.match((await cli.run(["run", "true"])).io.err, /another machine/);
});

test("workspaces are named from the caller's directory", async () => {
  const cli = new Cli();
  await cli.run(["run", "--workspace", "../other/./x", "--mode", "bind", "pwd"]);
  const [request] = cli.requests<Request>("runStream");
  assert.deepEqual([request!.spec?.workspace?.dir, request!.spec?.workspace?.mode], ["/srv/other/x", 3]);
  assert.equal((await cli.run(["run", "--workspace", "x", "--no-workspace", "pwd"])).code, 125);
});

test("--keep and --detach leave a sandbox, sessions share one", async () => {
  const cli = new Cli();
  const kept = await cli.run(["run", "--keep", "true"]);
  assert.match(kept.io.err, /kept sb_0+1\n/);
  const detached = await cli.run(["run", "--detach", "wait"]);
  assert.match(detached.io.out, /^sb_0+2 p1\n$/);
  await cli.run(["run", "-s", "work", "true"]);
  await cli.run(["run", "-s", "work", "true"]);
  const { io } = await cli.run(["ls", "-q"]);
  assert.equal(io.out.trim().split("\n").length, 3);
  assert.deepEqual(JSON.parse((await cli.run(["run", "-d", "--json", "wait"])).io.out), {
    sandbox_id: "sb_0000000000000004",
    process_id: "p1",
  });
});

test("a result as JSON has text where it is text", async () => {
  const cli = new Cli();
  const { io, code } = await cli.run(["run", "--json", "exit", "3"]);
  assert.equal(code, 3);
  const result = io.json as { stdout: string; exit: { code: number; timed_out: boolean } };
  assert.deepEqual([result.stdout, result.exit.code, result.exit.timed_out], ["", 3, false]);
  const binary = (await cli.run(["run", "--json", "bytes", "ff"])).io.json as object;
  assert.equal((binary as { stdout_bytes: string }).stdout_bytes, "/w==");
  const failed = await cli.run(["run", "--json", "nonsense"]);
  assert.equal(JSON.parse(failed.io.err).error.code, "COMMAND_NOT_FOUND");
});

test("logs and attach find the latest command, and leaving is no error", async () => {
  const cli = new Cli();
  await cli.run(["create", "-s", "work"]);
  await cli.run(["exec", "work", "echo", "hello"]);
  assert.equal((await cli.run(["logs", "work"])).io.out, "hello\n");
  assert.equal((await cli.run(["logs", "--from", "2", "work", "p1"])).io.out, "llo\n");
  assert.deepEqual(JSON.parse((await cli.run(["logs", "--json", "work"])).io.out), {
    seq: 6,
    stdout: { text: "hello\n" },
  });
  assert.equal((await cli.run(["attach", "work"])).io.out, "hello\n");
  await cli.run(["exec", "-d", "work", "wait"]);
  const following = await cli.start(["logs", "-f", "work"]);
  await until(() => following.io.listeners > 0);
  following.io.signal("SIGINT");
  assert.equal(await following.done, 130);
  const attached = await cli.start(["attach", "work"]);
  await until(() => attached.io.listeners > 0);
  attached.io.signal("SIGINT");
  assert.equal(await attached.done, 0);
  assert.match(attached.io.err, /p2 goes on/);
});
