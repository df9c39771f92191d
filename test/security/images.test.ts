// Images that were made to harm: refused whole, or harmless; the host is unchanged, and nothing is left behind.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { type Subject, subject } from "../e2e/workspace/project.ts";
import { accounts, temporaryDirectory } from "../support/daemon.ts";
import { forgetImages } from "../support/images.ts";
import { busyboxLayer, type Member, sha256, tarOf, writeLayout } from "../support/oci-image.ts";

const outside = `/tmp/caisson-image-outside-${process.pid}`;

const hostile: Record<string, Member[]> = {
  "a name with `..`": [{ name: `../../../../..${outside}`, content: "x" }],
  "an absolute name": [{ name: outside, content: "x" }],
  "a file through a link": [
    { kind: "2", name: "door", target: "/tmp" },
    { name: `door/${outside.slice(5)}`, content: "x" },
  ],
  "a directory through a link": [
    { kind: "2", name: "door", target: "/tmp" },
    { kind: "5", name: `door/${outside.slice(5)}` },
  ],
  "a hard link to the host": [{ kind: "1", name: "shadow", target: "../../../../etc/shadow" }],
  "a hard link through a link": [
    { kind: "2", name: "door", target: "/etc" },
    { kind: "1", name: "shadow", target: "door/shadow" },
  ],
  "a name that is too long": [{ name: "x".repeat(100), content: "", kind: "7" }],
};

for (const account of accounts()) {
  describe(`hostile images as ${account.name}`, { timeout: 240_000 }, () => {
    let it: Subject;
    before(async () => {
      it = await subject(account);
    });
    afterEach(() => forgetImages(it));
    after(() => it[Symbol.asyncDispose]());

    test("layers that reach outside are refused whole", async () => {
      for (const [what, members] of Object.entries(hostile)) {
        const dir = temporaryDirectory(account);
        writeLayout(dir, { name: "bad:1", layers: [busyboxLayer(), tarOf(members)] });
        spawnSync("chmod", ["-R", "a+rX", dir]);
        await assert.rejects(it.client.images.import({ path: dir }), { code: "HOSTILE_ARCHIVE" }, what);
        assert.ok(!existsSync(outside), what);
        assert.deepEqual(readdirSync(join(it.daemon.home, "images/unfinished")), [], what);
        rmSync(dir, { recursive: true });
      }
      assert.deepEqual(await it.client.images.list(), []);
    });

    test("what is not what its digest says is refused", async () => {
      const cases: [string, (dir: string) => void][] = [
        [
          "a layer's content",
          (dir) => writeLayout(dir, { layers: [busyboxLayer()], diffIds: [`sha256:${"0".repeat(64)}`] }),
        ],
        [
          "a layer's file",
          (dir) => {
            const layer = busyboxLayer();
            writeLayout(dir, { layers: [layer] });
            writeFileSync(join(dir, "blobs/sha256", sha256(layer)), tarOf([{ name: "other" }]));
          },
        ],
        [
          "a configuration",
          (dir) => {
            writeLayout(dir, { layers: [busyboxLayer()] });
            for (const name of readdirSync(join(dir, "blobs/sha256")))
              writeFileSync(join(dir, "blobs/sha256", name), "{}", { flag: "a" });
          },
        ],
        [
          "a digest that is a path",
          (dir) => {
            writeLayout(dir, { layers: [busyboxLayer()] });
            const manifests = [{ digest: "sha256:../../../../etc/passwd", size: 1 }];
            writeFileSync(join(dir, "index.json"), JSON.stringify({ manifests }));
          },
        ],
        ["nothing", () => {}],
        ["an index that is a link", (dir) => symlinkSync("/etc/shadow", join(dir, "index.json"))],
        ["an index that is no JSON", (dir) => writeFileSync(join(dir, "index.json"), "\u0000not json")],
      ];
      for (const [what, prepare] of cases) {
        const dir = temporaryDirectory(account);
        prepare(dir);
        spawnSync("chmod", ["-R", "a+rX", dir]);
        const failure = await it.client.images
          .import({ path: dir }, { name: "bad:1" })
          .catch((error) => error);
        assert.equal(failure.code, "IMAGE_INVALID", `${what}: ${failure.message}`);
        assert.doesNotMatch(failure.message, /root:/);
        rmSync(dir, { recursive: true });
      }
      assert.deepEqual(await it.client.images.list(), []);
      assert.deepEqual(readdirSync(join(it.daemon.home, "images/roots")), []);
    });

    test("devices are left out, set-id bits dropped, and links lead nowhere but into the sandbox", async () => {
      const dir = temporaryDirectory(account);
      const more = tarOf([
        { kind: "3", name: "disk", mode: 0o666 },
        { kind: "6", name: "fifo", mode: 0o666 },
        { name: "tool", mode: 0o6755, content: "#!/bin/sh\n" },
        { kind: "2", name: "host", target: "/../../../../../etc/hostname" },
        { kind: "2", name: "mnt", target: "/proc/1/root" },
      ]);
      writeLayout(dir, { name: "odd:1", layers: [busyboxLayer(), more], config: { Env: ["PATH=/bin"] } });
      spawnSync("chmod", ["-R", "a+rX", dir]);
      await it.client.images.import({ path: dir });
      const inStore = spawnSync(
        "find",
        [join(it.daemon.home, "images"), "(", "-type", "b,c,p,s", "-o", "-perm", "/6000", ")"],
        { encoding: "utf8" },
      );
      assert.equal(inStore.stdout, "");
      const { stdout } = await it.client.run(
        ["sh", "-c", "ls /disk /fifo 2>/dev/null; stat -c %a /tool; cat /host; ls /mnt/etc 2>&1"],
        { spec: { image: "odd:1" } },
      );
      assert.match(stdout.text, /^755\nsb-[a-z0-9]+\n/);
      assert.doesNotMatch(stdout.text, /shadow/);
      rmSync(dir, { recursive: true });
    });

    test("an image cannot be changed from inside, nor its files by way of hard links", async () => {
      const dir = temporaryDirectory(account);
      writeLayout(dir, { name: "tiny:1", layers: [busyboxLayer()], config: { Env: ["PATH=/bin"] } });
      spawnSync("chmod", ["-R", "a+rX", dir]);
      const image = await it.client.images.import({ path: dir });
      const root = join(it.daemon.home, "images/roots", image.id.slice(7));
      const look = () =>
        spawnSync(
          "sh",
          ["-c", `cd ${root} && find . -printf '%p %m %s %T@ %l\\n' | sort; sha256sum bin/busybox`],
          {
            encoding: "utf8",
          },
        ).stdout;
      const before = look();
      const script = [
        "echo x >> /app/greeting; rm -f /app/greeting; echo x > /bin/evil; busybox chmod 777 /bin/busybox",
        "busybox ln /app/greeting /tmp/link && echo x > /tmp/link; busybox mv /app /app2; busybox mount -o remount,rw /app",
        "for f in /proc/self/exe /proc/1/exe; do echo x > $f; done",
      ].join("\n");
      await it.client.run(["sh", "-c", script], { spec: { image: "tiny:1" } });
      assert.equal(look(), before);
      rmSync(dir, { recursive: true });
    });
  });
}
