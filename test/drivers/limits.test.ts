import assert from "node:assert/strict";
import { it } from "node:test";
import { processorQuotasOf } from "../support/control-groups.ts";
import { refused } from "../support/errors.ts";
import { conform } from "./conform.ts";

const MiB = 1024 * 1024;

await conform(({ box: make, client, gaps, hasOwnKernel }) => {
  const isShared = gaps.has("memory siblings");
  const uncounted = gaps.has("limit.pids") && "processes cannot be counted inside";

  it("ends what takes more memory than it may, says so, and goes on where it can", async () => {
    await using box = await make({ limits: { memory: (isShared ? 192 : 64) * MiB } });
    const exit = await box.run(["perl", "-e", "my @x; for (1..600) { push @x, 'a' x 1048576 } sleep 30"]);
    assert.deepEqual([exit.oomKilled, exit.signal], [true, "SIGKILL"]);
    // Memory is the whole sandbox's there, its kernel's included: it ends as one.
    if (isShared) {
      assert.equal(exit.lost, "guest_lost");
      const { state, endMessage } = (await client.sandboxes.get(box.id)).info;
      assert.equal(state, "ended");
      assert.match(endMessage, /^memory was exhausted/);
      return;
    }
    const next = await box.run(["echo", "alive"]);
    assert.deepEqual([next.stdout.text, next.oomKilled], ["alive\n", false]);
  });

  it("stops a fork bomb at the number of processes, and stays usable", { skip: uncounted }, async () => {
    await using box = await make({ limits: { pids: 32 } });
    const bomb = await box.run(
      [
        "perl",
        "-e",
        "my $n = 0; for (1..200) { my $p = fork; last unless defined $p; if (!$p) { sleep 60; exit } $n++ } print $n",
      ],
      {
        timeout: 20_000,
        grace: 100,
      },
    );
    const made = Number(bomb.stdout.text);
    assert.ok(made > 0 && made <= 32, bomb.stdout.text);
    await using again = await box.exec(["sh", "-c", ":(){ :|:& };:"], { timeout: 1000, grace: 100 });
    await again.exit;
    assert.equal((await box.run(["echo", "alive"])).stdout.text, "alive\n");
  });

  it("lets no private mount grow beyond its size", async () => {
    await using box = await make({ limits: { disk: 8 * MiB } });
    for (const dir of ["/tmp", "/home/agent", "/dev/shm", "/var/tmp"]) {
      const { stdout } = await box.run([
        "sh",
        "-c",
        `cd ${dir}; head -c 20000000 /dev/zero > big 2>&1; wc -c < big`,
      ]);
      assert.ok(Number(stdout.text) <= 8 * MiB, `${dir}: ${stdout.text}`);
    }
    await refused("STORAGE_FULL", box.files.write("/tmp/more", new Uint8Array(MiB)));
    await box.run(["rm", "/tmp/big"]);
    await box.files.write("/tmp/more", new Uint8Array(MiB));
  });

  it("bounds open files", async () => {
    await using box = await make({ limits: { openFiles: 64 } });
    const script =
      "my @f; for (1..500) { open(my $f, '<', '/dev/null') or last; push @f, $f } print scalar @f";
    const opened = Number((await box.run(["perl", "-e", script])).stdout.text);
    assert.ok(opened > 32 && opened <= 64, String(opened));
  });

  it("drops the oldest output beyond what is kept, and says how much is missing", async () => {
    await using box = await make({ limits: { output: 256 * 1024 } });
    const run = await box.exec(["sh", "-c", "yes 0123456789abcde | head -c 5000000; echo the end"]);
    await run.detach();
    const exit = await run.exit;
    assert.equal(exit.truncated, true);
    const { seq, firstKeptSeq } = await run.info();
    assert.equal(seq, 5_000_008);
    let missing = 0;
    let bytes = 0;
    let tail = "";
    for await (const event of box.process(run.id).output()) {
      if (event.stream === "gap") missing += event.missing;
      else {
        bytes += event.bytes.length;
        tail = (tail + Buffer.from(event.bytes).toString()).slice(-8);
      }
    }
    assert.equal(missing + bytes, seq);
    assert.equal(missing, firstKeptSeq);
    assert.ok(missing > 0 && bytes >= 128 * 1024);
    assert.equal(tail, "the end\n");
  });

  it("ends a command at the sandbox's own time limit", async () => {
    await using box = await make({ limits: { timeout: 300 } });
    const exit = await box.run(["sleep", "600"]);
    assert.deepEqual([exit.timedOut, exit.signal], [true, "SIGTERM"]);
  });

  it("bounds processors, or refuses to promise it", async () => {
    const asked = make({ limits: { cpus: 0.2 } });
    const answer = await asked.catch((error) => error);
    if (answer instanceof Error) {
      const error = await refused("NOT_ENFORCEABLE", asked);
      assert.equal(error.metadata.mechanism, "limit.cpu");
      return;
    }
    await using box = answer;
    // A kernel of its own counts a task as running while it waits for the host's processor: there the bound itself is looked at.
    if (hasOwnKernel) return assert.deepEqual(processorQuotasOf(box.id), ["20000"]);
    const exit = await box.run(["perl", "-e", "my $end = time + 2; 1 while time < $end"]);
    assert.ok(exit.usage.userMs < exit.durationMs * 0.6, `${exit.usage.userMs} of ${exit.durationMs} ms`);
  });

  it("reports every limit that was asked for, with its value and its means", async () => {
    const limits = {
      memory: 128 * MiB,
      ...(uncounted ? {} : { pids: 50 }),
      disk: 16 * MiB,
      openFiles: 128,
      output: MiB,
      timeout: 60_000,
    };
    await using box = await make({ limits });
    const report = box.info.enforced!;
    assert.partialDeepStrictEqual(report.limits, limits);
    for (const name of [
      "memory",
      ...(uncounted ? [] : ["pids"]),
      "disk",
      "open_files",
      "output",
      "timeout",
    ]) {
      const mechanism = report.mechanisms.find((one) => one.name === `limit.${name}`);
      assert.equal(mechanism?.state, "enforced", name);
      assert.notEqual(mechanism?.by, "", name);
    }
  });

  it("refuses a number of processes that cannot be held", {
    skip: !uncounted && "they can be counted",
  }, async () => {
    const error = await refused("NOT_ENFORCEABLE", make({ limits: { pids: 32 } }));
    assert.equal(error.metadata.mechanism, "limit.pids");
  });

  it("refuses bounds in which nothing could run", async () => {
    await refused("INVALID_INPUT", make({ limits: { memory: 1 } }));
    await refused("INVALID_INPUT", make({ limits: { pids: 1 } }));
  });

  it("tells what a sandbox uses", async () => {
    await using box = await make();
    await using run = await box.exec([
      "perl",
      "-e",
      "my $x = 'a' x 40000000; for (1..2000000) { $_ * 2 } print 'up'; $| = 1; print ''; sleep 600",
    ]);
    await run.output().next();
    await box.run(["sh", "-c", "head -c 3000000 /dev/zero > /tmp/f"]);
    const stats = await box.stats();
    assert.equal(stats.running, 1);
    assert.ok(stats.pids >= 1, "pids");
    assert.ok(stats.memoryBytes > 30_000_000, `memory ${stats.memoryBytes}`);
    assert.ok(stats.cpuMs > 0, "cpu");
    assert.ok(stats.diskBytes >= 3_000_000, `disk ${stats.diskBytes}`);
  });
});
