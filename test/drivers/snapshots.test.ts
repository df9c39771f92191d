import assert from "node:assert/strict";
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { processorQuotasOf } from "../support/control-groups.ts";
import { temporaryDirectory } from "../support/daemon.ts";
import { refused } from "../support/errors.ts";
import { eventually } from "../support/eventually.ts";
import { conform } from "./conform.ts";

await conform(({ box: make, client, account, driver }) => {
  it("holds still while it is paused, and goes on", async () => {
    await using box = await make();
    await using run = await box.exec(["sh", "-c", "while :; do echo tick; sleep 0.1; done"]);
    await eventually(
      () => outputOf(box.id, run.id),
      (count) => count > 0,
    );
    assert.equal((await client.snapshots.pause(box.id)).paused, true);
    await refused("SANDBOX_PAUSED", box.run(["true"]));
    const before = await outputOf(box.id, run.id);
    await new Promise((resolve) => setTimeout(resolve, 700));
    // What was under way when it was paused may still have come.
    assert.ok((await outputOf(box.id, run.id)) - before <= "tick\n".length);
    assert.equal((await client.snapshots.resume(box.id)).paused, false);
    await eventually(
      () => outputOf(box.id, run.id),
      (count) => count > before + 10,
    );
  });

  it("keeps files as a template, from which others begin, each on its own, also when it went out and came back", async () => {
    const project = temporaryDirectory(account);
    mkdirSync(join(project, "src"));
    writeFileSync(join(project, "src/old"), "old\n");
    writeFileSync(join(project, "kept"), "kept\n");
    for (const path of ["src", "src/old", "kept"]) chownSync(join(project, path), account.uid, account.gid);
    await using box = await make({
      workspace: { dir: project, mode: driver === "bubblewrap" ? "overlay" : "copy" },
    });
    const prepared = await box.run([
      "sh",
      "-c",
      "echo home > ~/file; echo new > new; rm src/old; echo more >> kept; mkdir -p -m 750 ~/d/e; chmod 640 new;" +
        "ln -s /nowhere ~/d/link; mkdir fresh; echo x > fresh/x; ln -s ../new fresh/link; touch -d 2001-02-03 ~/d/e new",
    ]);
    assert.equal(prepared.code, 0, prepared.stderr.text);
    const name = `ready-${driver}-${account.uid}`;
    const snapshot = await client.snapshots.take(box.id, { template: name });
    assert.deepEqual([snapshot.template, snapshot.memory, snapshot.sandboxId], [name, false, box.id]);
    const again = await client.snapshots.take(box.id, { labels: { taken: "twice" } });
    assert.deepEqual([again.id, again.template], [snapshot.id, name], "the same content has the same id");
    assert.deepEqual((await client.snapshots.get(name)).labels, { taken: "twice" });
    await using one = await client.create({ snapshot: name });
    const archive = await Array.fromAsync(client.snapshots.export(name));
    await client.snapshots.delete(snapshot.id);
    const imported = await client.snapshots.import(piecesOf(archive), { template: name, labels: { a: "1" } });
    assert.deepEqual(
      [imported.id, imported.template, imported.driver, imported.imported, imported.labels],
      [snapshot.id, name, driver, true, { a: "1" }],
    );
    const same = await client.snapshots.import(piecesOf(archive), { labels: { b: "2" } });
    assert.deepEqual([same.id, same.template], [snapshot.id, name], "it is kept once");
    assert.deepEqual(same.labels, { a: "1", b: "2" });
    // Whose project it is to be is said by whoever is here.
    await refused("INVALID_INPUT", client.create({ snapshot: name }));
    await using other = await client.create({ snapshot: name, workspace: { dir: project } });
    // Homes are kept with whole seconds.
    const names = `find ~ ${project} -mindepth 1 -printf '%p %y %m %l %T@\\n' | sed 's/[.][0-9]*$//' | sort`;
    const [original, ...copies] = await Promise.all(
      [box, one, other].map(async (each) => (await each.run(["sh", "-c", names])).stdout.text),
    );
    assert.ok(original!.includes("/d/link"), original);
    for (const copy of copies) assert.equal(copy, original);
    const look = ["sh", "-c", "cat ~/file new kept; ls src; echo mine > ~/file"];
    assert.equal((await one.run(look)).stdout.text, "home\nnew\nkept\nmore\n");
    assert.equal((await other.run(look)).stdout.text, "home\nnew\nkept\nmore\n");
    assert.deepEqual(
      (await client.snapshots.list({ templates: true })).map(({ id }) => id),
      [snapshot.id],
    );
    await client.snapshots.delete(name);
    await refused("SNAPSHOT_NOT_FOUND", client.create({ snapshot: name }));
  });

  it("keeps no variable of a sandbox", async () => {
    await using box = await make({ env: { TOKEN: "canary-snapshot" } });
    const snapshot = await client.snapshots.take(box.id);
    const pieces: Uint8Array[] = [];
    for await (const piece of client.snapshots.export(snapshot.id)) pieces.push(piece);
    assert.ok(!Buffer.concat(pieces).includes("canary-snapshot"));
    await client.snapshots.delete(snapshot.id);
  });

  it("forks a sandbox: with its running commands where it is a machine of its own, else with its files", async () => {
    // Only root has control groups here, and only a machine goes on without being closed anew.
    const isBounded = driver === "qemu" && account.uid === 0;
    await using box = await make(isBounded ? { limits: { cpus: 1.5 } } : {});
    await box.run(["sh", "-c", "echo here > ~/file; echo there > /tmp/file"]);
    await using run = await box.exec(["sh", "-c", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.2; done"]);
    await eventually(
      () => outputOf(box.id, run.id),
      (count) => count > 4,
    );
    const [copy] = await client.snapshots.fork(box.id);
    await using forked = client.sandboxes.at(copy!.id);
    assert.equal((await forked.run(["cat", "/home/agent/file"])).stdout.text, "here\n");
    if (isBounded) assert.deepEqual(processorQuotasOf(copy!.id), ["150000"]);
    if (driver === "qemu") {
      assert.equal((await forked.run(["cat", "/tmp/file"])).stdout.text, "there\n");
      const reached = await outputOf(copy!.id, run.id);
      await eventually(
        () => outputOf(copy!.id, run.id),
        (count) => count > reached,
      );
      // Copies draw different numbers, and know what time it is.
      const draw = ["sh", "-c", "head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid"];
      assert.notEqual((await forked.run(draw)).stdout.text, (await box.run(draw)).stdout.text);
      const now = Number((await forked.run(["date", "+%s"])).stdout.text);
      assert.ok(Math.abs(now - Date.now() / 1000) < 30, String(now));
    }
    assert.equal((await box.run(["echo", "on"])).stdout.text, "on\n");
  });

  const itOfMachines = driver === "qemu" ? it : () => {};
  itOfMachines("keeps a whole machine on the disk, from which others go on when it is gone", async () => {
    const box = await make();
    await using run = await box.exec(["sh", "-c", "echo there > /tmp/file; sleep 600"]);
    await eventually(
      () => box.run(["cat", "/tmp/file"]),
      ({ code }) => code === 0,
    );
    const snapshot = await client.snapshots.take(box.id, { memory: true });
    assert.deepEqual([snapshot.memory, snapshot.sandboxId], [true, box.id]);
    await box.delete();
    // Under one account from the disk, under the other by way of an archive: each takes a gigabyte to be looked through.
    const isImported = account.uid !== 0;
    if (isImported) {
      const archive = await Array.fromAsync(client.snapshots.export(snapshot.id));
      await client.snapshots.delete(snapshot.id);
      const imported = await client.snapshots.import(piecesOf(archive), { memory: true });
      assert.deepEqual([imported.id, imported.memory, imported.imported], [snapshot.id, true, true]);
      await refused("INVALID_INPUT", client.create({ snapshot: snapshot.id, profile: "strict" }));
    }
    await using again = await client.create({ snapshot: snapshot.id });
    const guest = again.info.enforced?.mechanisms.find(({ name }) => name === "guest");
    assert.equal(guest?.state, isImported ? "not enforced" : undefined);
    assert.equal((await again.run(["cat", "/tmp/file"])).stdout.text, "there\n");
    const going = (await again.processes()).find(({ id }) => id === run.id);
    assert.ok(going && !going.exit, "its command goes on");
    await client.snapshots.delete(snapshot.id);
    assert.equal((await again.run(["cat", "/tmp/file"])).stdout.text, "there\n");
  });

  it("gives each sandbox its own identity", async () => {
    const ask = [
      "sh",
      "-c",
      "cat /etc/machine-id; hostname; head -c 16 /dev/urandom | od -An -tx1; date +%s",
    ];
    const answers: string[][] = [];
    for (let number = 0; number < 2; number++) {
      await using box = await make();
      answers.push((await box.run(ask)).stdout.text.split("\n"));
    }
    for (const index of [0, 1, 2]) assert.notEqual(answers[0]![index], answers[1]![index]);
    for (const answer of answers) assert.ok(Math.abs(Number(answer[3]) - Date.now() / 1000) < 60);
  });

  async function* piecesOf(archive: Uint8Array[]): AsyncGenerator<Uint8Array> {
    yield* archive;
  }

  async function outputOf(sandboxId: string, processId: string): Promise<number> {
    const processes = await client.sandboxes.at(sandboxId).processes();
    return processes.find(({ id }) => id === processId)?.seq ?? 0;
  }
});
