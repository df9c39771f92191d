import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, it } from "node:test";
import type { Box, Result } from "@caisson/client";
import { refused } from "../support/errors.ts";
import { eventually } from "../support/eventually.ts";
import { canaries, conform } from "./conform.ts";

const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Runs a command that says when it is up, with as much time as it takes to come up here and now. */
async function untilUp(run: (timeout: number) => Promise<Result>): Promise<Result> {
  for (let timeout = 300; ; timeout *= 4) {
    const result = await run(timeout);
    if (result.stdout.text.startsWith("up") || timeout > 30_000) return result;
  }
}

await conform(({ box: make, gaps }) => {
  let box: Box;
  before(async () => {
    box = await make();
  });
  after(() => box.delete());
  const sh = (script: string, options = {}) => box.run(["sh", "-c", script], options);

  it("passes exit codes through", async () => {
    for (const code of [0, 1, 42, 255]) {
      const exit = await sh(`exit ${code}`);
      assert.deepEqual([exit.code, exit.signal, exit.lost], [code, "", ""]);
    }
  });

  it("tells a death by signal from an exit code", async () => {
    for (const [signal, number] of [
      ["KILL", 9],
      ["TERM", 15],
      ["SEGV", 11],
    ] as const) {
      const exit = await sh(`kill -${signal} $$`);
      assert.deepEqual([exit.code, exit.signal], [128 + number, `SIG${signal}`]);
    }
  });

  it("hands arguments over exactly as they are", async () => {
    const given = [
      "",
      " ",
      "a b",
      "*",
      "$HOME",
      "'",
      '"',
      "\\",
      "\n",
      "-n",
      "--",
      "žluťoučký 🐎",
      "x".repeat(100_000),
    ];
    const { stdout } = await box.run(["perl", "-e", 'print join("\\0", @ARGV)', "--", ...given]);
    assert.deepEqual(stdout.text.split("\0"), given);
  });

  it("knows a command that is not there from one that cannot be run", async () => {
    await refused("COMMAND_NOT_FOUND", box.run(["no-such-program"]));
    await refused("COMMAND_NOT_FOUND", box.run(["/no/such/program"]));
    await box.files.write("/tmp/plain", "#!/bin/sh\n", { mode: 0o644 });
    await refused("COMMAND_NOT_EXECUTABLE", box.run(["/tmp/plain"]));
    await refused("INVALID_INPUT", box.run([]));
  });

  it("starts where it is told, and at home otherwise", async () => {
    assert.equal((await sh("pwd")).stdout.text, "/home/agent\n");
    assert.equal((await sh("pwd", { cwd: "/usr/lib" })).stdout.text, "/usr/lib\n");
    await refused("PATH_NOT_FOUND", sh("pwd", { cwd: "/nowhere" }));
  });

  it("shows nothing of the daemon's environment", async () => {
    const env = (await sh("env; cat /proc/*/environ 2>/dev/null", { env: { MINE: "given" } })).stdout.text;
    for (const value of Object.values(canaries).filter(Boolean)) assert.ok(!env.includes(value), value);
    assert.ok(!env.includes("CAISSON_HOME"));
    assert.match(env, /^MINE=given$/m);
    assert.match(env, /^HOME=\/home\/agent$/m);
  });

  it("keeps one command's variables from another's", async () => {
    await sh("true", { env: { ONLY_HERE: "1" } });
    assert.equal((await sh(`echo "\${ONLY_HERE-none}"`)).stdout.text, "none\n");
  });

  it("is a documented, sane world", async () => {
    const { stdout } = await sh(
      "id -u; id -un; echo $HOME; echo $LANG; hostname; touch /tmp/a ~/b && echo writable",
    );
    const host = box.id.replaceAll("_", "-");
    assert.equal(stdout.text, `1000\nagent\n/home/agent\nC.UTF-8\n${host}\nwritable\n`);
  });

  it("gives a root without any capability, or says that it cannot", async () => {
    const asked = box.run(["sh", "-c", "id -u; grep ^CapEff /proc/self/status"], { user: "root" });
    const answer = await asked.catch((error) => error);
    if (answer instanceof Error) await refused("NOT_ENFORCEABLE", asked);
    else assert.equal(answer.stdout.text, "0\nCapEff:\t0000000000000000\n");
  });

  it("ends standard input at once when there is none", async () => {
    assert.equal((await sh("cat; echo end")).stdout.text, "end\n");
  });

  it("takes ten megabytes of binary input and gives them back exactly", async () => {
    const data = randomBytes(10 << 20);
    const { stdout, truncated } = await box.run(["cat"], { stdin: data });
    assert.equal(truncated, false);
    assert.equal(hash(stdout.bytes), hash(data));
  });

  it("takes input piece by piece and ends it when told", async () => {
    const run = await box.exec(["sh", "-c", "while read line; do echo got $line; done; echo eof"], {
      openStdin: true,
    });
    await run.stdin.write("one\n");
    const first = await run.output().next();
    assert.equal(Buffer.from(first.value.bytes).toString(), "got one\n");
    await run.stdin.end("two\n");
    assert.equal((await run.result()).stdout.text, "got one\ngot two\neof\n");
    await refused("PROCESS_ENDED", run.stdin.write("more"));
  });

  it("keeps standard output and standard error apart", async () => {
    const { stdout, stderr } = await sh("echo out; echo err >&2; echo out2");
    assert.deepEqual([stdout.text, stderr.text], ["out\nout2\n", "err\n"]);
  });

  it("numbers output by its bytes and replays it from any number", async () => {
    const run = await box.exec(["sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"]);
    const whole = (await run.result()).stdout.bytes;
    const { seq } = await run.info();
    assert.equal(seq, whole.length);
    for (const from of [0, 1, 777, whole.length - 1, whole.length]) {
      const pieces: Uint8Array[] = [];
      let last = from;
      for await (const event of box.process(run.id).output({ from })) {
        assert.ok(event.stream === "stdout");
        assert.equal(event.seq, last + event.bytes.length);
        last = event.seq;
        pieces.push(event.bytes);
      }
      assert.equal(hash(Buffer.concat(pieces)), hash(whole.subarray(from)), `from ${from}`);
    }
  });

  it("goes on when its client lets go, and can be attached to by another", async () => {
    const run = await box.exec(["sh", "-c", "echo before; read line; echo after $line"], { openStdin: true });
    await run.detach();
    const again = box.process(run.id);
    await again.stdin.end("x\n");
    assert.equal((await again.result()).stdout.text, "before\nafter x\n");
  });

  it("runs several commands at once", async () => {
    const all = await Promise.all(
      Array.from({ length: 12 }, (_, i) => sh(`echo start ${i}; sleep 0.2; echo end ${i}`)),
    );
    for (const [i, { stdout, code }] of all.entries()) {
      assert.deepEqual([stdout.text, code], [`start ${i}\nend ${i}\n`, 0]);
    }
    assert.equal(new Set(all.map(({ processId }) => processId)).size, 12);
  });

  it("does not stall one command behind another's unread flood", async () => {
    await using flood = await box.exec(["sh", "-c", "yes | head -c 50000000; sleep 600"]);
    await flood.detach();
    assert.equal((await sh("echo through")).stdout.text, "through\n");
  });

  it("signals a whole group", async () => {
    const run = await box.exec(["sh", "-c", "sleep 611 & sleep 611 & echo up; wait"]);
    await run.output().next();
    await run.signal("TERM");
    assert.equal((await run.exit).signal, "SIGTERM");
    await refused("PROCESS_ENDED", run.signal("SIGTERM"));
    await refused("INVALID_INPUT", box.process(run.id).signal("SIGNOTHING"));
    assert.equal((await sh("pgrep -fx 'sleep 611' | wc -l")).stdout.text, "0\n");
  });

  const treeless = gaps.has("commands.tree") && "a double fork leaves its command's tree in this gVisor";

  it("kills a double-forked tree that ignores SIGTERM when its time is over", {
    skip: treeless,
  }, async () => {
    const tree =
      "trap '' TERM; (setsid sh -c \"trap '' TERM; while :; do sleep 613; done\" &) ; echo up; while :; do sleep 1; done";
    const exit = await untilUp((timeout) => sh(tree, { timeout, grace: 200 }));
    assert.equal(exit.timedOut, true);
    assert.equal(exit.signal, "SIGKILL");
    assert.equal(exit.stdout.text, "up\n");
    await eventually(
      () => sh("pgrep -fx 'sleep 613' | wc -l"),
      ({ stdout }) => stdout.text === "0\n",
    );
  });

  it("lets a command that heeds SIGTERM end in its own way", async () => {
    const heeding = "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done";
    const exit = await untilUp((timeout) => sh(heeding, { timeout, grace: 20_000 }));
    assert.deepEqual([exit.timedOut, exit.code, exit.stdout.text], [true, 7, "up\nbye\n"]);
  });

  it("ends with the command, not with what it left in the background", async () => {
    const run = await box.exec(["sh", "-c", "(sleep 617 >/dev/null 2>&1 &); echo done"]);
    assert.equal((await run.exit).code, 0);
  });

  it("reports use, duration and what was enforced with the exit", async () => {
    const exit = await box.run(["perl", "-e", "my $x = 'a' x 30000000; for (1..300000) { $x = $x }"]);
    assert.ok(exit.durationMs > 0);
    assert.ok(exit.usage.userMs + exit.usage.systemMs > 0);
    assert.ok(exit.usage.maxRssBytes > 30_000_000);
    assert.deepEqual(exit.enforced, box.info.enforced);
  });

  it("cuts a batch's output at its bound and says so", async () => {
    const { stdout, truncated, code } = await sh("head -c 17000000 /dev/zero");
    assert.deepEqual([stdout.bytes.length, truncated, code], [16 << 20, true, 0]);
  });

  it("runs nothing twice under one key", async () => {
    const run = () => sh("echo x >> /tmp/once; wc -l < /tmp/once", { idempotencyKey: "once-1" });
    const [one, two] = [await run(), await run()];
    assert.deepEqual([one.stdout.text, two.stdout.text], ["1\n", "1\n"]);
    assert.equal(one.processId, two.processId);
    await refused("IDEMPOTENCY_CONFLICT", sh("echo other", { idempotencyKey: "once-1" }));
  });
});
