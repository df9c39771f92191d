import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { processesWith } from "../support/daemon.ts";
import { refused } from "../support/errors.ts";
import { eventually, sleep } from "../support/eventually.ts";
import { conform } from "./conform.ts";

const launched = new Map<string, number>();

await conform(({ box: make, client, driver, daemon, account, hasOwnKernel }) => {
  const ended = async (id: string) => {
    const box = await client.sandboxes.get(id);
    return eventually(
      () => box.refresh(),
      ({ state }) => state === "ended",
    );
  };

  // What they do is wait, and each has its own.
  describe("in time", { concurrency: true }, () => {
    it("ends a sandbox in which nothing runs when its idle time is over", async () => {
      const box = await make({ idleTtl: 1000 });
      const info = await ended(box.id);
      assert.equal(info.endReason, "idle");
      await refused("SANDBOX_ENDED", box.run(["true"]));
    });

    it("does not take a running command for idleness", async () => {
      await using box = await make();
      const run = await box.exec(["sleep", "2"]);
      await box.extend({ idleTtl: 1000 });
      const exit = await run.exit;
      assert.deepEqual([exit.code, exit.lost], [0, ""]);
    });

    it("ends a sandbox at its greatest age, whatever it does", async () => {
      const box = await make();
      const run = await box.exec(["sleep", "600"]);
      await box.extend({ maxAge: 1000 });
      assert.equal((await run.exit).lost, "sandbox_ended");
      assert.equal((await ended(box.id)).endReason, "max_age");
    });

    it("lives longer when it is told to", async () => {
      await using box = await make({ maxAge: 4000 });
      const info = await box.extend({ maxAge: 600_000, idleTtl: 600_000 });
      assert.ok(info.expiresAt!.getTime() > Date.now() + 60_000);
      await sleep(4500);
      assert.equal((await box.refresh()).state, "ready");
    });
  });

  it("leaves nothing on the host when it is deleted", async () => {
    const box = await make();
    // Another account's are on the same host.
    const sleeping = `sleep ${600_000 + account.uid}`;
    await using run = await box.exec(["sh", "-c", `(setsid ${sleeping} &) ; ${sleeping}`]);
    const processes = () => (hasOwnKernel ? machinesOf(box.id, daemon) : processesWith(sleeping));
    await eventually(
      () => processes().length,
      (count) => count === (hasOwnKernel ? 1 : 3),
    );
    const info = await box.delete();
    assert.deepEqual([info.state, info.endReason], ["ended", "deleted"]);
    assert.equal((await run.exit).lost, "sandbox_ended");
    assert.deepEqual(processes(), []);
    await box.delete({ forget: true });
    await eventually(
      () => existsSync(join(daemon.home, "sandboxes", box.id)),
      (there) => !there,
    );
    await refused("SANDBOX_NOT_FOUND", client.sandboxes.get(box.id));
  });

  it("makes one sandbox for one key", async () => {
    const make = () =>
      client.create({ driver, labels: { t: "once" } }, { idempotencyKey: `create-once-${driver}` });
    const [one, two] = await Promise.all([make(), make()]);
    assert.equal(one.id, two.id);
    await one.delete();
  });

  it("lists by labels, the living only unless asked for all", async () => {
    await using one = await make({ labels: { task: "1", team: "a" } });
    await using _two = await make({ labels: { task: "2", team: "a" } });
    const ids = async (labels: Record<string, string>, all = false) =>
      (await Array.fromAsync(client.sandboxes.list({ labels, all }))).map(({ id }) => id);
    assert.deepEqual(await ids({ task: "1", team: "a" }), [one.id]);
    assert.equal((await ids({ team: "a" })).length, 2);
    await one.delete();
    assert.deepEqual(await ids({ task: "1" }), []);
    assert.deepEqual(await ids({ task: "1" }, true), [one.id]);
  });

  it("numbers its life in the log", async () => {
    const box = await make();
    await box.run(["true"]);
    await box.delete();
    const events = await Array.fromAsync(client.events.subscribe({ sandboxId: box.id, follow: false }));
    assert.deepEqual(
      events.map(({ type }) => type),
      ["sandbox.starting", "sandbox.ready", "process.started", "process.exited", "sandbox.ended"],
    );
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map(({ seq }) => seq).sort((a, b) => a - b),
    );
  });

  it("shares one sandbox between the commands of a session", async () => {
    const spec = { driver };
    const box = await client.sessions.open("Work", spec);
    assert.equal((await client.sessions.open("work", spec)).id, box.id);
    await client.run(["sh", "-c", "echo one > ~/file"], { session: "work", spec });
    assert.equal(
      (await client.run(["cat", "/home/agent/file"], { session: "work", spec })).stdout.text,
      "one\n",
    );
    await refused("SESSION_CONFLICT", client.sessions.open("work", { driver, profile: "restrictive" }));
    assert.equal((await client.sandboxes.get("session:work")).id, box.id);
    await client.sessions.close("work");
    assert.equal((await ended(box.id)).endReason, "session_closed");
    await refused("SESSION_NOT_FOUND", client.sessions.close("work"));
  });

  it("keeps a shell's state between commands that ask for it, and only those", async () => {
    await using box = await make();
    const sh = (script: string) => box.run([script], { shellState: true });
    await sh("cd /usr/lib; export COLOUR=blue; greet() { echo hi $1; }; secret=kept");
    const { stdout } = await sh("pwd; echo $COLOUR $secret; greet you");
    assert.equal(stdout.text, "/usr/lib\nblue kept\nhi you\n");
    assert.equal((await sh("false")).code, 1);
    assert.equal(
      (await box.run(["sh", "-c", `pwd; echo \${COLOUR-none}`])).stdout.text,
      "/home/agent\nnone\n",
    );
    await refused("INVALID_INPUT", box.run(["a", "b"], { shellState: true }));
  });

  it("ends with its command when it was made for it", async () => {
    const result = await client.run(["sh", "-c", "echo hi; exit 3"], { spec: { driver } });
    assert.deepEqual([result.stdout.text, result.code], ["hi\n", 3]);
    assert.equal((await ended(result.sandboxId)).endReason, "run_finished");
  });

  it("serves each warm sandbox once, and clean", async () => {
    const seen = new Set<string>();
    // A machine takes seconds; the second would find what the first has left.
    const count = hasOwnKernel ? 3 : 6;
    for (let i = 0; i < count; i++) {
      const script =
        "ls -A /tmp /var/tmp /dev/shm ~ | grep dirt; echo x | tee /tmp/dirt /dev/shm/dirt > ~/dirt";
      const { sandboxId, stdout } = await client.run(["sh", "-c", script], { spec: { driver } });
      seen.add(sandboxId);
      assert.equal(stdout.text, "");
    }
    assert.equal(seen.size, count);
  });
});

/** The outer process of a sandbox, by its launch log. */
function machinesOf(id: string, daemon: { home: string }): number[] {
  const log = join(daemon.home, "sandboxes", id, "launch.log");
  if (existsSync(log)) launched.set(id, Number(/launched ([0-9]+)/.exec(readFileSync(log, "utf8"))?.[1]));
  const pid = launched.get(id);
  return pid !== undefined && existsSync(`/proc/${pid}`) ? [pid] : [];
}
