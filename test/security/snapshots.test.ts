// Snapshots that were made to harm: refused whole, or harmless; the host is unchanged, and nothing is left behind.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { makeProject, type Subject, subject } from "../e2e/workspace/project.ts";
import { accounts } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { type Member, tarOf } from "../support/oci-image.ts";
import { type SnapshotInit, snapshotArchive, withExtended } from "../support/snapshot-archive.ts";

const outside = `/tmp/caisson-snapshot-outside-${process.pid}`;
const overlay = { workspace: { dir: "/project", mode: 2 } };

/** What no archive may have, below a directory. */
const hostile = (dir: string): Record<string, Member[]> => ({
  "a name with `..`": [{ name: `${dir}../../../../../..${outside}`, content: "x" }],
  "an absolute name": [{ name: outside, content: "x" }],
  "a file through a link": [
    { kind: "2", name: `${dir}door`, target: "/tmp" },
    { name: `${dir}door/${outside.slice(5)}`, content: "x" },
  ],
  "a directory through a link": [
    { kind: "2", name: `${dir}door`, target: "/tmp" },
    { kind: "5", name: `${dir}door/${outside.slice(5)}` },
  ],
  "a hard link to the host": [{ kind: "1", name: `${dir}shadow`, target: "../../../../etc/shadow" }],
  "a hard link to nothing": [{ kind: "1", name: `${dir}shadow`, target: `${dir}nothing` }],
  "a hard link through a link": [
    { kind: "2", name: `${dir}door`, target: "/etc" },
    { kind: "1", name: `${dir}shadow`, target: `${dir}door/shadow` },
  ],
  "a disk": [{ kind: "4", name: `${dir}disk`, mode: 0o666 }],
  "a set-uid bit": [{ name: `${dir}su`, mode: 0o4755, content: "x" }],
  "a set-gid bit": [{ kind: "5", name: `${dir}sg`, mode: 0o2755 }],
  "a capability": withExtended({ name: `${dir}cap` }, "SCHILY.xattr.security.capability", "x"),
  "an attribute of the host's overlays": withExtended(
    { kind: "5", name: `${dir}d` },
    "SCHILY.xattr.trusted.overlay.opaque",
    "y",
  ),
  "an access list": withExtended({ name: `${dir}acl` }, "SCHILY.acl.access", "u::rwx"),
  "a name twice": [{ name: `${dir}twice` }, { name: `${dir}twice` }],
  "a name twice, once as a link": [
    { kind: "2", name: `${dir}t`, target: "/etc" },
    { kind: "5", name: `${dir}t` },
  ],
  "a name in a directory that never came": [{ name: `${dir}never/came`, content: "x" }],
});

const upper = { kind: "5", name: "upper" };

/** Parts that make a good snapshot a bad one. */
const bad: Record<string, [code: string, SnapshotInit]> = {
  ...Object.fromEntries(
    Object.entries(hostile("")).map(([what, more]) => [what, ["HOSTILE_ARCHIVE", { more }]]),
  ),
  ...Object.fromEntries(
    Object.entries(hostile("")).map(([what, members]) => [
      `in the home, ${what}`,
      ["HOSTILE_ARCHIVE", { files: { "home.tar": tarOf(members) } }],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(hostile("upper/")).map(([what, members]) => [
      `in the layer, ${what}`,
      ["HOSTILE_ARCHIVE", { files: { "layer.tar": tarOf([upper, ...members]) }, sandbox: overlay }],
    ]),
  ),
  "a link": ["HOSTILE_ARCHIVE", { more: [{ kind: "2", name: "machine", target: "/etc/shadow" }] }],
  "a FIFO": ["HOSTILE_ARCHIVE", { more: [{ kind: "6", name: "project.tar" }] }],
  "a file that is none of a snapshot's": ["SNAPSHOT_INVALID", { more: [{ name: "extra" }] }],
  "a second document": ["HOSTILE_ARCHIVE", { more: [{ name: "./snapshot.json", content: "{}" }] }],
  "another content than its id's": ["SNAPSHOT_INVALID", { more: [{ name: "project.tar", content: "x" }] }],
  "a part of a machine": ["SNAPSHOT_INVALID", { files: { machine: Buffer.from("x") } }],
  "another form": ["SNAPSHOT_INVALID", { document: { form: 2 } }],
  "an id that is a path": ["SNAPSHOT_INVALID", { document: { id: "../../../etc" } }],
  "commands without memory": ["SNAPSHOT_INVALID", { document: { processes: [{ id: "p1" }] } }],
  "a sandbox's id that is a path": ["SNAPSHOT_INVALID", { sandbox: { id: "../x" } }],
  "a project with a line feed": ["SNAPSHOT_INVALID", { sandbox: { workspace: { dir: "/a\nb", mode: 2 } } }],
  "a driver that is not here": ["NO_DRIVER", { sandbox: { driver: "nosuch" } }],
  "a document that is too large": ["SNAPSHOT_INVALID", { document: { fill: "x".repeat(17 << 20) } }],
};

for (const account of accounts()) {
  describe(`hostile snapshots as ${account.name}`, { timeout: 60_000 }, () => {
    let it: Subject;
    before(async () => {
      it = await subject(account);
    });
    after(() => it[Symbol.asyncDispose]());
    const kept = () => readdirSync(join(it.daemon.home, "snapshots"));

    test("are refused whole, and nothing is left of them", async () => {
      for (const [what, [code, init]] of Object.entries(bad)) {
        const failure = await it.client.snapshots.import(snapshotArchive(init)).catch((error) => error);
        assert.equal(failure.code, code, `${what}: ${failure.message}`);
        assert.ok(!existsSync(outside), what);
        assert.deepEqual(kept(), [], what);
      }
      const good = snapshotArchive({});
      for (const cut of [0, 100, 512, 1000, good.length - 1500]) {
        const failure = await it.client.snapshots.import(good.subarray(0, cut)).catch((error) => error);
        assert.match(failure.code, /^(HOSTILE_ARCHIVE|SNAPSHOT_INVALID)$/, `${cut}: ${failure.message}`);
      }
      assert.deepEqual(kept(), []);
      assert.deepEqual(await it.client.snapshots.list(), []);
    });

    test("that never end, or unfold to more than there is, are refused", async () => {
      // Nothing is made of any of them.
      const headers = Buffer.concat(Array(2000).fill(tarOf([{ kind: "5", name: "./" }]).subarray(0, 512)));
      async function* endless() {
        for (;;) yield headers;
      }
      await assert.rejects(it.client.snapshots.import(endless()), { code: "TOO_LARGE" });
      const hole = Buffer.from(tarOf([{ kind: "S", name: "home.tar" }]).subarray(0, 512));
      hole.write("ustar  \0", 257, "latin1");
      hole.write("77777777777", 483);
      const bomb = Buffer.concat(Array.from({ length: 8 }, (_, at) => mended(named(hole, `bomb${at}`))));
      await assert.rejects(it.client.snapshots.import(bomb), { code: "TOO_LARGE" });
      assert.deepEqual(kept(), []);
    });

    test("bring no permission, no directory of the host's, and no owner", async () => {
      using project = makeProject(account, "echo project > file");
      const layer = tarOf([
        { kind: "5", name: "applies" },
        { name: "applies/journal", content: "x" },
        { name: "directories", content: "x" },
        upper,
        { name: "upper/written", content: "w\n", mode: 0o640 },
        ...withExtended(
          { kind: "5", name: "upper/d", mode: 0o755 },
          "SCHILY.xattr.user.overlay.redirect",
          "/etc",
        ),
        { kind: "2", name: "upper/out", target: "/etc/shadow" },
      ]);
      const archive = snapshotArchive({
        files: { "layer.tar": layer, "home.tar": tarOf([{ name: "mine", content: "m\n" }]) },
        sandbox: {
          workspace: { dir: project.dir, mode: 2 },
          spec: {
            network: { mode: "NETWORK_MODE_ON" },
            secrets: ["token"],
            env: { A: "canary" },
            profile: "nosuch",
          },
        },
      });
      const snapshot = await it.client.snapshots.import(archive);
      await assert.rejects(it.client.create({ snapshot: snapshot.id }), { code: "INVALID_INPUT" });
      await using box = await it.client.create({ snapshot: snapshot.id, workspace: { dir: project.dir } });
      assert.equal((await box.network.get()).network.mode, "off");
      const look = "cat ~/mine file written; readlink out; stat -c '%U %a' written; echo A=$A; ls d";
      const seen = await box.run(["sh", "-c", look]);
      assert.equal(seen.stdout.text, "m\nproject\nw\n/etc/shadow\nagent 640\nA=\n", seen.stderr.text);
      const layerDir = join(it.daemon.home, "sandboxes", box.id, "layer");
      const found = spawnSync("find", [layerDir, "-printf", "%p %u\n"], { encoding: "utf8" }).stdout;
      assert.doesNotMatch(found, /applies|directories/);
      const owners = new Set(
        found
          .trim()
          .split("\n")
          .map((line) => line.split(" ")[1]),
      );
      assert.deepEqual([...owners], [account.name]);
      await it.client.snapshots.delete(snapshot.id);
      for (const [sandbox, code] of [
        [{ image: "/etc" }, "IMAGE_NOT_FOUND"],
        [{ image: "nosuch:1", imageId: "0".repeat(64) }, "IMAGE_NOT_FOUND"],
        [{ workspace: { dir: "/etc", mode: 5 } }, "INVALID_INPUT"],
      ] as const) {
        const { id } = await it.client.snapshots.import(snapshotArchive({ sandbox }));
        await assert.rejects(it.client.create({ snapshot: id }), { code });
        await it.client.snapshots.delete(id);
      }
    });

    test("that come, go and are given up at the same time leave whole ones or nothing", async () => {
      const archive = snapshotArchive({
        files: { "home.tar": tarOf([{ name: "f", content: "x".repeat(1 << 20) }]) },
      });
      const tasks = Array.from({ length: 8 }, async (_, number) => {
        const abort = new AbortController();
        async function* slowly() {
          yield archive.subarray(0, 700_000);
          if (number % 2 === 1) abort.abort();
          yield archive.subarray(700_000);
        }
        const { id } = await it.client.snapshots.import(slowly(), { signal: abort.signal });
        if (number % 4 === 0) await it.client.snapshots.delete(id).catch(() => {});
        return id;
      });
      const settled = await Promise.allSettled(tasks);
      assert.deepEqual(
        settled.map(({ status }) => status === "fulfilled"),
        settled.map((_, number) => number % 2 === 0),
      );
      const { id } = await it.client.snapshots.import(archive);
      await eventually(kept, (names) => names.length === 1);
      await using box = await it.client.create({ snapshot: id });
      assert.equal((await box.run(["sh", "-c", "wc -c < ~/f"])).stdout.text, `${1 << 20}\n`);
      await it.client.snapshots.delete(id);
      assert.deepEqual(kept(), []);
    });

    test("that a killed daemon was taking in are gone with the next one", async () => {
      const archive = snapshotArchive({});
      async function* stuck(signal: AbortSignal) {
        yield archive.subarray(0, 600);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      }
      const abort = new AbortController();
      const given = it.client.snapshots.import(stuck(abort.signal)).catch((error) => error);
      await eventually(kept, (names) => names.some((name) => name.startsWith("new-")));
      await it.daemon.crash();
      abort.abort();
      assert.ok((await given) instanceof Error);
      await it.daemon.restart();
      await eventually(kept, (names) => names.length === 0);
      assert.equal((await it.client.snapshots.import(archive)).imported, true);
      rmSync(outside, { force: true });
    });
  });
}

/** Makes a header's checksum right again. */
function mended(header: Buffer): Buffer {
  header.fill(" ", 148, 156);
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

function named(header: Buffer, name: string): Buffer {
  const copy = Buffer.from(header);
  copy.write(name.padEnd(20, "\0"), 0);
  return copy;
}
