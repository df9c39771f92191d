import assert from "node:assert/strict";
import { test } from "node:test";
import { Cli } from "../testing/cli.ts";

const terminals = ["stdin", "stdout", "stderr"] as const;

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A terminal at which a test types. */
function keyboard() {
  const typed: string[] = [];
  let wake = () => {};
  return {
    type(line: string) {
      typed.push(`${line}\n`);
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const line = typed.shift();
        if (line !== undefined) yield Buffer.from(line);
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    },
  };
}

test("what waits is listed, and answered as far as was said", async () => {
  const cli = new Cli();
  const asked = ["a", "b", "c"].map((name) =>
    cli.daemon.approvals.ask({
      kind: "network",
      subject: `${name}.test:443`,
      agent: "codex",
      reason: "no rule",
    }),
  );
  const { io } = await cli.run(["approvals"]);
  assert.match(io.out, /ap_0000000001 +network +a\.test:443 +codex/);
  assert.equal(
    (await cli.run(["approvals", "allow", asked[0]!.id])).io.out,
    "allowed (once): network a.test:443\n",
  );
  await cli.run(["approvals", "allow", asked[1]!.id, "--sandbox"]);
  await cli.run(["approvals", "deny", "--always", asked[2]!.id]);
  assert.deepEqual(
    cli.requests("decideApproval").map(({ allow, decisionScope }) => [allow, decisionScope]),
    [
      [true, 1],
      [true, 2],
      [false, 3],
    ],
  );
  assert.deepEqual((await cli.run(["approvals", "ls", "--json"])).io.json, []);
  assert.equal(((await cli.run(["approvals", "ls", "--all", "--json"])).io.json as []).length, 3);
});

test("an answer that does not fit is a mistake of usage, one too late an error", async () => {
  const cli = new Cli();
  assert.equal((await cli.run(["approvals", "allow", "ap_0000000001", "--once", "--always"])).code, 2);
  assert.equal((await cli.run(["approvals", "allow"])).code, 2);
  assert.match((await cli.run(["approvals", "deny", "ap_0000000001"])).io.err, /no such approval/);
});

test("the terminal that started a run is asked, line by line", async () => {
  const cli = new Cli();
  const keys = keyboard();
  const { io, done } = await cli.start(["run", "wait"], { terminals, stdin: keys });
  await until(() => cli.daemon.sandboxes.size === 1);
  const [sandboxId] = [...cli.daemon.sandboxes.keys()];
  const ask = (subject: string) =>
    cli.daemon.approvals.ask({ kind: "network", subject, sandboxId: sandboxId!, reason: "no rule" });
  const first = ask("a.test:443");
  await until(() => io.err.includes("a.test:443: no rule. Allow?"));
  keys.type("what?");
  keys.type("s");
  await until(() => first.state === 2);
  assert.equal(first.decisionScope, 2);
  const second = ask("b.test\u001b[2J:443");
  await until(() => io.err.includes("b.test"));
  assert.ok(!io.err.includes("\u001b"));
  keys.type("n");
  await until(() => second.state === 3);
  const third = ask("c.test:443");
  await until(() => io.err.includes("c.test"));
  cli.daemon.approvals.expire(third.id);
  await until(() => io.err.includes("expired: no answer came in time"));
  cli.daemon.process(sandboxId!, "p1").signal("SIGKILL");
  await done;
});

test("without a terminal, a line says how to answer; in an interactive session, nothing is said", async () => {
  for (const [words, options, expected] of [
    [["run", "wait"], {}, /answer with `caisson approvals allow ap_0000000001`/],
    [["run", "-i", "wait"], { terminals, stdin: keyboard() }, /answer with `caisson approvals allow/],
    [["run", "-t", "wait"], { terminals, stdin: keyboard() }, undefined],
  ] as const) {
    const cli = new Cli();
    const { io, done } = await cli.start(words, options);
    await until(() => cli.daemon.sandboxes.size === 1);
    const [sandboxId] = [...cli.daemon.sandboxes.keys()];
    cli.daemon.approvals.ask({ kind: "network", subject: "a.test:443", sandboxId: sandboxId! });
    if (expected) await until(() => expected.test(io.err));
    else await new Promise((resolve) => setTimeout(resolve, 400));
    if (!expected) assert.equal(io.err, "");
    cli.daemon.process(sandboxId!, "p1").signal("SIGKILL");
    await done;
  }
});

test("requests of every sandbox can be answered at one terminal", async () => {
  const cli = new Cli();
  const keys = keyboard();
  const { io, done } = await cli.start(["approvals", "watch"], { terminals, stdin: keys });
  const asked = cli.daemon.approvals.ask({
    kind: "profile",
    subject: "permissive",
    agent: "codex",
    requestedBy: "uid:1",
  });
  await until(() => io.err.includes("codex in uid:1 wants profile permissive"));
  keys.type("y");
  await until(() => asked.state === 2);
  io.signal("SIGINT");
  assert.equal(await done, 130);
});
