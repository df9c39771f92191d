import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Box, Run } from "@caisson/client";
import { refused } from "../support/errors.ts";
import { conform } from "./conform.ts";

/** Reads a terminal's output until a text has come. */
async function readUntil(run: Run, text: string): Promise<string> {
  let seen = "";
  for await (const event of run.output()) {
    assert.ok(event.stream === "stdout");
    seen += Buffer.from(event.bytes).toString();
    if (seen.includes(text)) return seen;
  }
  throw new Error(`"${text}" never came: ${seen}`);
}

await conform(({ box: make, gaps }) => {
  const fixed = gaps.has("terminal signals") && "this gVisor's terminals send no signals";

  let box: Box;
  before(async () => {
    box = await make();
  });
  after(() => box.delete());

  it("is a real terminal of the size and kind that was asked for", async () => {
    const result = await box.run(
      ["sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size; tty; echo $TERM"],
      {
        terminal: { columns: 132, rows: 43, term: "vt100" },
      },
    );
    assert.match(result.stdout.text, /^43 132\r\n\/dev\/pts\/\d+\r\nvt100\r\n$/);
    assert.equal(result.stderr.bytes.length, 0);
  });

  it("has 80 columns and 24 rows unless told otherwise", async () => {
    const { stdout } = await box.run(["sh", "-c", "stty size; echo $TERM"], { terminal: true });
    assert.equal(stdout.text, "24 80\r\nxterm-256color\r\n");
  });

  it("tells the command when its size changes", { skip: fixed }, async () => {
    const script = "trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done";
    await using run = await box.exec(["sh", "-c", script], { terminal: true, openStdin: true });
    await readUntil(run, "up");
    await run.resize(99, 33);
    await readUntil(box.process(run.id), "33 99");
  });

  it("turns Ctrl-C into a signal for what runs in front", { skip: fixed }, async () => {
    // One process: a shell that is just starting another may miss the signal.
    const argv = ["perl", "-e", "$| = 1; print 'up'; sleep 600"];
    const run = await box.exec(argv, { terminal: true, openStdin: true });
    await readUntil(run, "up");
    await run.stdin.write("\x03");
    assert.equal((await run.exit).signal, "SIGINT");
  });

  it("runs an interactive shell with job control", { skip: fixed }, async () => {
    await using run = await box.exec(["bash", "--norc", "-i"], { terminal: true, openStdin: true });
    await run.stdin.write("sleep 619 &\njobs; echo o''k\n");
    const seen = await readUntil(run, "ok");
    assert.match(seen, /Running\s+sleep 619/);
    assert.doesNotMatch(seen, /no job control/);
    await run.stdin.write("exit 5\n");
    assert.equal((await run.exit).code, 5);
  });

  it("refuses to resize what has no terminal, or ended", async () => {
    await using run = await box.exec(["sleep", "600"]);
    await refused("NO_TERMINAL", run.resize(80, 24));
    const ended = await box.exec(["true"], { terminal: true });
    await ended.exit;
    await refused("PROCESS_ENDED", ended.resize(80, 24));
  });
});
