import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import { memoryBoundsOf } from "../support/control-groups.ts";
import { startDaemon, type TestDaemon } from "../support/daemon.ts";
import { isFull, within } from "../support/dose.ts";
import { refused } from "../support/errors.ts";
import { eventually } from "../support/eventually.ts";

describe("microVMs", { timeout: within(200_000) }, () => {
  let daemon: TestDaemon;
  let client: Client;

  before(async () => {
    daemon = await startDaemon();
    client = await connect({ socket: daemon.socket });
    const { drivers } = await client.system.capabilities();
    assert.equal(
      drivers.find(({ name }) => name === "qemu")?.usable,
      true,
      "the reference platform has QEMU",
    );
  });

  after(async () => {
    await client.close();
    await daemon[Symbol.asyncDispose]();
  });

  it("outlive the daemon: a command goes on, and none of its output is lost or doubled", async () => {
    const box = await client.create({ driver: "qemu" });
    const count = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo $i; sleep 0.1; done";
    const { id } = await box.exec(["sh", "-c", count]);
    await eventually(
      async () => (await box.processes()).find((process) => process.id === id)?.seq ?? 0,
      (seq) => seq > 4,
    );
    await daemon.crash();
    await daemon.restart();
    await client.close();
    client = await connect({ socket: daemon.socket });
    const again = client.sandboxes.at(box.id);
    const { code, stdout } = await again.process(id).result();
    assert.equal(code, 0);
    assert.equal(stdout.text, Array.from({ length: 40 }, (_, index) => `${index + 1}\n`).join(""));
    await again.delete();
  });

  it("have the memory that was asked for, also under the next daemon and when they are forked", async () => {
    const memory = 2 * 1024 ** 3;
    const box = await client.create({ driver: "qemu", limits: { memory } });
    const { limits, mechanisms } = box.info.enforced!;
    assert.equal(limits.memory, memory);
    const detail = (name: string) => mechanisms.find((mechanism) => mechanism.name === name)?.detail;
    const machine = Number(/^(\d+) bytes/.exec(detail("memory.machine") ?? "")?.[1]);
    assert.ok(machine > memory, "what its kernel needs is on top");
    for (const bound of memoryBoundsOf(box.id)) assert.ok(bound > machine, "its process may have all of it");
    await daemon.crash();
    await daemon.restart();
    await client.close();
    client = await connect({ socket: daemon.socket });
    const [copy] = await client.snapshots.fork(box.id);
    for (const id of [box.id, copy!.id]) {
      await using again = client.sandboxes.at(id);
      const { stdout } = await again.run([
        "sed",
        "-n",
        "s/^MemAvailable: *\\([0-9]*\\) kB$/\\1/p",
        "/proc/meminfo",
      ]);
      assert.ok(Number(stdout.text) * 1024 >= memory, stdout.text);
      for (const bound of memoryBoundsOf(id)) assert.ok(bound > machine);
    }
    const error = await refused(
      "NOT_ENFORCEABLE",
      client.create({ driver: "qemu", limits: { memory: 2 ** 44 } }),
    );
    assert.equal(error.metadata.mechanism, "limit.memory");
  });

  it("end with a reason when their process is killed, and the next one works", async () => {
    const box = await client.create({ driver: "qemu" });
    await using run = await box.exec(["sleep", "600"]);
    process.kill(machineOf(daemon.home, box.id), "SIGKILL");
    assert.notEqual((await run.exit).lost, "");
    const ended = await eventually(
      () => box.refresh(),
      ({ state }) => state === "ended",
    );
    assert.equal(ended.endReason, "guest_died");
    await using next = await client.create({ driver: "qemu" });
    assert.equal((await next.run(["echo", "alive"])).stdout.text, "alive\n");
  });

  it("end once when they are killed while output and a file are on their way, and nothing else hangs", async () => {
    const box = await client.create({ driver: "qemu" });
    await using noisy = await box.exec(["sh", "-c", "while :; do echo load; done"]);
    const writing = box.files.write("/tmp/large", Buffer.alloc(64 * 1024 * 1024, "x")).then(
      () => "written",
      (error: { code?: string }) => error.code,
    );
    await eventually(
      async () => (await box.processes()).find(({ id }) => id === noisy.id)?.seq ?? 0,
      (seq) => seq > 0,
    );
    process.kill(machineOf(daemon.home, box.id), "SIGKILL");
    assert.notEqual((await noisy.exit).lost, "");
    assert.match(String(await writing), /^[A-Z_]+$/, "an error of the table, not success");
    const ended = await eventually(
      () => box.refresh(),
      ({ state }) => state === "ended",
    );
    assert.match(ended.endReason, /^guest_(died|lost)$/);
  });

  it("end with the words of their kernel when it panics", async () => {
    const box = await client.create({ driver: "qemu" });
    await using run = await box.exec(["sleep", "600"]);
    // Only the host reaches the machine's first process, and only that may do this.
    const control = connectSocket(join(daemon.home, "sandboxes", box.id, "control.sock"));
    control.write(`\npanic ${"0".repeat(64)}\n`);
    assert.notEqual((await run.exit).lost, "");
    const ended = await eventually(
      () => box.refresh(),
      ({ state }) => state === "ended",
    );
    assert.equal(ended.endReason, "guest_died");
    assert.match(ended.endMessage, /kernel panicked: sysrq triggered crash/);
    control.destroy();
  });

  it("are many at once, and each answers", async () => {
    const count = isFull() ? 20 : 5;
    const boxes = await Promise.all(Array.from({ length: count }, () => client.create({ driver: "qemu" })));
    const answers = await Promise.all(boxes.map((box, index) => box.run(["echo", String(index)])));
    assert.deepEqual(
      answers.map(({ stdout }) => stdout.text),
      boxes.map((_, index) => `${index}\n`),
    );
    const ids = new Set(
      (await Promise.all(boxes.map((box) => box.run(["cat", "/etc/machine-id"])))).map(
        ({ stdout }) => stdout.text,
      ),
    );
    assert.equal(ids.size, count);
    await Promise.all(boxes.map((box) => box.delete()));
  });
});

/** QEMU's own process: the innermost below the one that was launched. */
function machineOf(home: string, id: string): number {
  const log = readFileSync(join(home, "sandboxes", id, "launch.log"), "utf8");
  let pid = Number(/launched ([0-9]+)/.exec(log)?.[1]);
  for (;;) {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
    );
    if (children.length === 0) return pid;
    pid = children[0]!;
  }
}
