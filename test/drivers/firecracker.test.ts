// The driver against a peer that checks every request as Firecracker's published description has it, with a real guest behind
// it: what can be shown without the hardware that Firecracker needs.
import assert from "node:assert/strict";
import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import { TestHome } from "../../packages/sandbox/src/toolchains/testing/home.ts";
import { accounts, startDaemon, type TestDaemon, temporaryDirectory } from "../support/daemon.ts";
import { refused } from "../support/errors.ts";
import { eventually } from "../support/eventually.ts";
import { installPeer } from "../support/firecracker/install.ts";
import { Launcher } from "../support/launcher.ts";

const isRoot = process.getuid!() === 0;
const driver = "firecracker";

describe("firecracker, against its published description", {
  skip: !isRoot && "its jailer needs root",
  timeout: 240_000,
}, () => {
  let daemon: TestDaemon;
  let client: Client;
  let peer: ReturnType<typeof installPeer>;

  before(async () => {
    const directory = temporaryDirectory(accounts()[0]!);
    peer = installPeer(directory);
    daemon = await startDaemon({ env: { CAISSON_MICROVM_PROGRAMS: directory, CAISSON_POOL_MAX: "0" } });
    client = await connect({ socket: daemon.socket });
  });

  after(async () => {
    await client.close();
    await daemon[Symbol.asyncDispose]();
  });

  const jailOf = (id: string) => {
    const base = join(daemon.home, "sandboxes", id, "jail/firecracker");
    return join(base, readdirSync(base)[0]!, "root");
  };

  it("is usable once a machine has really booted, and says that hardware was not seen", async () => {
    const { drivers } = await client.system.capabilities();
    const found = drivers.find(({ name }) => name === driver);
    assert.equal(found?.usable, true, found?.reason);
    assert.ok(found.capabilities.includes("unexercised"));
    assert.ok(peer.requests().includes("PUT /actions ok"));
  });

  it("runs commands in copies of a template, each in a jail under a uid of its own", async () => {
    await using one = await client.create({ driver });
    await using two = await client.create({ driver });
    for (const box of [one, two]) {
      assert.equal(
        (await box.run(["sh", "-c", "echo hello; cat"], { stdin: "there\n" })).stdout.text,
        "hello\nthere\n",
      );
    }
    const uids = [one, two].map(({ id }) => statSync(jailOf(id)).uid);
    assert.ok(uids.every((uid) => uid >= 0x6c00_0000) && uids[0] !== uids[1], String(uids));
    // What the machine is made of can be read there, and changed by nobody.
    for (const name of ["image", "state", "memory"]) {
      const file = lstatSync(join(jailOf(one.id), name));
      assert.deepEqual([file.isFile(), file.uid, file.mode & 0o022], [true, 0, 0], name);
    }
    const by = new Map(one.info.enforced!.mechanisms.map((mechanism) => [mechanism.name, mechanism.by]));
    assert.deepEqual([by.get("machine"), by.get("vmm.jail"), by.get("uid")], ["KVM", "jailer", "jailer"]);
    assert.equal(one.info.tier, "microvm");
  });

  it("gives toolchains that were asked for as a second disk, also to a copy of a kept machine", async () => {
    using home = new TestHome();
    for (const name of ["cargo", "rustup"]) home.program(`.cargo/bin/${name}`);
    const env = { PATH: `${home.path(".cargo/bin")}:/usr/bin:/bin`, HOME: home.dir };
    const caisson = new Launcher(daemon);
    const drives = () => peer.requests().filter((line) => line === "PUT /drives/beside ok").length;
    const usual = await caisson.json(["create"], ["--no-workspace", "--driver", driver], { env });
    assert.deepEqual([existsSync(join(jailOf(usual.id), "beside")), drives()], [false, 0]);
    const asked = ["--no-workspace", "--driver", driver, "--toolchains", "auto"];
    const box = await client.sandboxes.get((await caisson.json(["create"], asked, { env })).id);
    assert.equal(drives(), 1);
    const { state, by } = box.info.enforced!.mechanisms.find(({ name }) => name === "toolchains")!;
    assert.deepEqual([state, by], ["enforced", "read-only disk"]);
    const [twin] = await client.snapshots.fork(box.id);
    for (const { id } of [box, twin!]) {
      const file = lstatSync(join(jailOf(id), "beside"));
      assert.deepEqual([file.isFile(), file.uid, file.mode & 0o022], [true, 0, 0]);
    }
    for (const { id } of [usual, box, twin!]) await client.sandboxes.delete(id);
  });

  it("boots a larger machine for who asks for more memory", async () => {
    const boots = () => peer.requests().filter((line) => line === "PUT /machine-config ok").length;
    const sizes: number[] = [];
    const booted: number[] = [];
    for (const memory of [1024, 1536, 2048].map((mebibytes) => mebibytes * 1024 ** 2)) {
      const before = boots();
      await using box = await client.create({ driver, limits: { memory } });
      const { limits, mechanisms } = box.info.enforced!;
      assert.equal(limits.memory, memory);
      sizes.push(Number.parseInt(mechanisms.find(({ name }) => name === "memory.machine")!.detail, 10));
      booted.push(boots() - before);
      assert.ok(sizes.at(-1)! > memory);
    }
    assert.ok(sizes[0]! < sizes[1]! && sizes[1] === sizes[2], String(sizes));
    // An earlier run may have left its template.
    assert.ok(booted[0] === 0 && booted[1]! <= 1 && booted[2] === 0, String(booted));
  });

  it("takes a project as a copy and gives its changes back", async () => {
    const project = temporaryDirectory(accounts()[0]!);
    await using box = await client.create({ driver, workspace: { dir: project } });
    await box.run(["sh", "-c", "echo new > made"]);
    await box.workspace.apply();
    assert.equal(readFileSync(join(project, "made"), "utf8"), "new\n");
  });

  it("pauses, keeps and copies a machine by the calls that are published", async () => {
    await using box = await client.create({ driver });
    assert.equal((await client.snapshots.pause(box.id)).paused, true);
    assert.equal((await client.snapshots.resume(box.id)).paused, false);
    const clocks = () => peer.words().filter((word) => word === "clock").length;
    const before = clocks();
    const snapshot = await client.snapshots.take(box.id, { memory: true });
    assert.equal(snapshot.memory, true);
    // It stood still, and is told what time it is.
    await eventually(clocks, (count) => count > before);
    const said = peer.requests().slice(-4);
    assert.deepEqual(said.slice(-3), ["PATCH /vm ok", "PUT /snapshot/create ok", "PATCH /vm ok"]);
    // Keeping it has cut the link.
    assert.equal((await box.run(["echo", "on"])).stdout.text, "on\n");
    assert.ok(!readdirSync(jailOf(box.id)).some((name) => name.startsWith("kept-")));
    await client.snapshots.delete(snapshot.id);
  });

  it("connects to nothing of the host that a machine puts in its socket's place", async () => {
    const box = await client.create({ driver });
    const socket = join(jailOf(box.id), "vsock.sock");
    renameSync(socket, `${socket}.own`);
    symlinkSync(daemon.socket, socket);
    await daemon.crash();
    await daemon.restart();
    await client.close();
    client = await connect({ socket: daemon.socket });
    const info = await eventually(
      () => client.sandboxes.at(box.id).refresh(),
      ({ state }) => state === "ended",
    );
    assert.notEqual(info.endReason, "");
  });

  it("goes on under the next daemon, and is gone with its jail when it is deleted", async () => {
    const box = await client.create({ driver });
    const jail = jailOf(box.id);
    await daemon.crash();
    await daemon.restart();
    await client.close();
    client = await connect({ socket: daemon.socket });
    const again = client.sandboxes.at(box.id);
    assert.equal((await again.run(["echo", "still"])).stdout.text, "still\n");
    await again.delete({ forget: true });
    await eventually(
      () => existsSync(jail),
      (there) => !there,
    );
  });

  it("asked for nothing that the description does not have", () => {
    assert.deepEqual(
      peer.requests().filter((line) => !line.endsWith(" ok")),
      [],
    );
  });

  it("is not usable where machines do not boot, and the refusal says so", async () => {
    const directory = temporaryDirectory(accounts()[0]!);
    installPeer(directory).fault("hangs");
    await using other = await startDaemon({ env: { CAISSON_MICROVM_PROGRAMS: directory } });
    await using asking = await connect({ socket: other.socket });
    const error = await refused("NO_DRIVER", asking.create({ driver }));
    assert.match(String(error), /does not boot/);
    const strongest = await asking.create({ tier: "strongest" });
    assert.notEqual(strongest.info.driver, driver);
    await strongest.delete();
  });
});
