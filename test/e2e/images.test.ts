// Images as the root of sandboxes, from each kind of source, as root and as an ordinary user.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { connect } from "@caisson/client";
import { accounts, self, startDaemon, temporaryDirectory } from "../support/daemon.ts";
import { sharedEngine, whyNoEngine } from "../support/engine.ts";
import { forgetImages } from "../support/images.ts";
import { busyboxLayer, tarOf, writeLayout } from "../support/oci-image.ts";
import { makeProject, type Subject, subject } from "./workspace/project.ts";

const config = {
  Env: ["PATH=/bin", "FROM_IMAGE=yes", "HOME=/root"],
  WorkingDir: "/app",
  User: "0",
  Entrypoint: ["sh"],
};

for (const account of accounts()) {
  describe(`images as ${account.name}`, { timeout: 240_000 }, () => {
    let it: Subject;
    before(async () => {
      it = await subject(account);
    });
    afterEach(() => forgetImages(it));
    after(() => it[Symbol.asyncDispose]());

    test("a layout, an archive and a compressed archive give the same image once", async () => {
      const dir = temporaryDirectory(account);
      writeLayout(join(dir, "layout"), {
        name: "tiny:1",
        layers: [busyboxLayer()],
        config,
        compress: "zstd",
      });
      spawnSync("tar", ["-cf", join(dir, "tiny.tar"), "-C", join(dir, "layout"), "."]);
      spawnSync("gzip", ["--keep", join(dir, "tiny.tar")]);
      spawnSync("chmod", ["-R", "a+rX", dir]);
      const steps = new Set<string>();
      const first = await it.client.images.import(
        { path: join(dir, "layout") },
        { onProgress: ({ step }) => steps.add(step) },
      );
      assert.equal(first.name, "tiny:1");
      assert.ok(steps.has("layer"), [...steps].join());
      const second = await it.client.images.import({ path: join(dir, "tiny.tar") }, { name: "tiny:2" });
      const third = await it.client.images.import({ path: join(dir, "tiny.tar.gz") }, { name: "tiny:3" });
      assert.deepEqual([second.id, third.id], [first.id, first.id]);
      assert.deepEqual([first.workdir, first.user, first.entrypoint], ["/app", "0", ["sh"]]);
      const kept = join(it.daemon.home, "images");
      assert.deepEqual(
        ["layers", "roots", "unfinished"].map((part) => readdirSync(join(kept, part)).length),
        [1, 1, 0],
      );
      rmSync(dir, { recursive: true });
    });

    test("a sandbox has the image's files read-only, its variables and its directory, and its own user", async () => {
      await importTiny(it, account);
      const run = (script: string, spec = {}) =>
        it.client.run(["sh", "-c", script], { spec: { image: "tiny:1", ...spec } });
      const { stdout } = await run(
        "pwd; cat greeting /etc/motd; echo $FROM_IMAGE $HOME; id -u; ls /usr 2>&1",
      );
      assert.equal(
        stdout.text.replace(/^ls: .*$/m, "no /usr"),
        "/app\nfrom the image\nwelcome\nyes /home/agent\n1000\nno /usr\n",
      );
      const writes = await run("touch /app/x /bin/x /etc/x /x; touch /tmp/x /home/agent/x && echo private");
      assert.equal(writes.stdout.text, "private\n");
      assert.equal(writes.stderr.text.match(/Read-only/g)?.length, 4);
      assert.match((await run("cat /etc/passwd")).stdout.text, /^agent:/m);
      assert.equal((await run("cat /var/lib/data")).stdout.text, "data\n");
      assert.equal((await run("stat -c %a /bin/busybox")).stdout.text, "755\n");
    });

    test("what a sandbox wrote outside the project is gone with it", async () => {
      await importTiny(it, account);
      await it.client.run(["sh", "-c", "echo secret > /tmp/left"], { spec: { image: "tiny:1" } });
      const next = await it.client.run(["sh", "-c", "cat /tmp/left"], { spec: { image: "tiny:1" } });
      assert.notEqual(next.code, 0);
      const found = spawnSync("find", [join(it.daemon.home, "images"), "-name", "left"], {
        encoding: "utf8",
      });
      assert.equal(found.stdout, "");
    });

    test("a project lies at its own path, also where the image has directories on the way", async () => {
      const layer = tarOf([
        { name: "tmp/hidden", content: "" },
        { name: "srv/x", content: "image" },
      ]);
      await importTiny(it, account, [layer]);
      using project = makeProject(account, "echo original > file");
      const spec = { image: "tiny:1", workspace: { dir: project.dir } };
      const box = await it.client.create(spec);
      const result = await box.run(["sh", "-c", "pwd; echo changed > file; cat /srv/x; ls /tmp"]);
      assert.equal(result.stdout.text.split("\n")[0], project.dir);
      assert.doesNotMatch(result.stdout.text, /hidden/);
      assert.equal((await box.workspace.diff()).length, 1);
      assert.match(project.sh("cat file"), /original/);
    });

    test("a directory is an image too, and sockets in it are out of reach", async () => {
      const dir = temporaryDirectory(account);
      const unpacked = spawnSync("tar", ["-xf", "-", "-C", dir, "--exclude=dev"], { input: busyboxLayer() });
      assert.equal(unpacked.status, 0, String(unpacked.stderr));
      mkdirSync(join(dir, "srv"));
      spawnSync("chown", ["-R", `${account.uid}:${account.gid}`, dir]);
      const server = createServer((socket) => socket.end("host\n")).listen(join(dir, "srv/door"));
      spawnSync("chmod", ["a+rwx", join(dir, "srv/door")]);
      try {
        const box = await it.client.create({ image: dir, env: { PATH: "/bin" } });
        const { stdout } = await box.run([
          "sh",
          "-c",
          "cat /app/greeting; ls /srv; nc local:/srv/door </dev/null || echo refused",
        ]);
        assert.equal(stdout.text, "from the image\ndoor\nrefused\n");
        const sandbox = await it.client.sandboxes.get(box.id);
        assert.ok(
          sandbox.info.enforced?.mechanisms.some(
            ({ name, detail }) => name === "image" && detail.includes(dir),
          ),
        );
      } finally {
        server.close();
        rmSync(dir, { recursive: true, force: true });
      }
    });

    test("what cannot be an image is refused", async () => {
      for (const [image, code] of [
        ["nothing:1", "IMAGE_NOT_FOUND"],
        ["/nonexistent", "IMAGE_NOT_FOUND"],
        ["/", "WORKSPACE_REFUSED"],
        ["/proc", "WORKSPACE_REFUSED"],
        [it.daemon.home, "WORKSPACE_REFUSED"],
      ] as const)
        await assert.rejects(it.client.create({ image }), { code }, image);
      await assert.rejects(it.client.images.import({ path: "/nonexistent" }), { code: "PATH_NOT_FOUND" });
      await assert.rejects(it.client.images.remove("nothing:1"), { code: "IMAGE_NOT_FOUND" });
    });

    test("images share layers; removing one frees what no other and no sandbox uses", async () => {
      await importTiny(it, account);
      await importTiny(it, account, [tarOf([{ name: "more", content: "x".repeat(5000) }])], "tiny:2");
      const [one, two] = await it.client.images.list();
      assert.equal(one!.layers[0], two!.layers[0]);
      assert.deepEqual([one!.unsharedBytes, two!.unsharedBytes], [0, 5000]);
      const inode = (id: string) =>
        statSync(join(it.daemon.home, "images/roots", id.slice(7), "bin/busybox")).ino;
      assert.equal(inode(one!.id), inode(two!.id));
      const box = await it.client.create({ image: "tiny:2" });
      assert.equal((await it.client.images.list())[1]!.inUse, 1);
      await it.client.images.remove("tiny:2");
      // The sandbox goes on; its root is freed when it has ended.
      assert.equal((await box.run(["sh", "-c", "cat /more | grep -c x"])).stdout.text, "1\n");
      await box.delete();
      await it.client.images.collect();
      assert.equal(readdirSync(join(it.daemon.home, "images/roots")).length, 1);
      assert.equal(readdirSync(join(it.daemon.home, "images/layers")).length, 1);
      assert.ok((await it.client.images.remove(one!.id.slice(7, 19))) > 1_000_000);
      assert.deepEqual(await it.client.images.list(), []);
      assert.equal(readdirSync(join(it.daemon.home, "images/roots")).length, 0);
    });

    test("an import that a crash interrupted leaves nothing that stays", async () => {
      await importTiny(it, account);
      mkdirSync(join(it.daemon.home, "images/unfinished/part-old/deep"), { recursive: true });
      writeFileSync(join(it.daemon.home, "images/unfinished/part-old/deep/file"), "x".repeat(1000));
      spawnSync("chown", ["-R", `${account.uid}:${account.gid}`, join(it.daemon.home, "images/unfinished")]);
      assert.ok((await it.client.images.collect()).bytes >= 1000);
      assert.ok(!existsSync(join(it.daemon.home, "images/unfinished/part-old")));
      assert.equal(
        (await it.client.run(["sh", "-c", "echo ok"], { spec: { image: "tiny:1" } })).stdout.text,
        "ok\n",
      );
    });
  });
}

async function importTiny(
  { client }: Awaited<ReturnType<typeof subject>>,
  account: ReturnType<typeof accounts>[number],
  more: Buffer[] = [],
  name = "tiny:1",
): Promise<void> {
  const dir = temporaryDirectory(account);
  writeLayout(dir, { name, layers: [busyboxLayer(), ...more], config, compress: "gzip" });
  spawnSync("chmod", ["-R", "a+rX", dir]);
  await client.images.import({ path: dir });
  rmSync(dir, { recursive: true });
}

test("images come from the container engine and from what it saves", {
  timeout: 120_000,
  skip: whyNoEngine(),
}, async () => {
  await using engine = await sharedEngine();
  const docker = (args: string[], input?: Buffer) =>
    spawnSync("docker", args, { env: { ...process.env, ...engine.env }, input, maxBuffer: 64 << 20 });
  const change = ["ENV FROM_IMAGE=docker", "WORKDIR /app", "ENV PATH=/bin"].flatMap((one) => [
    "--change",
    one,
  ]);
  const made = docker(["import", ...change, "-", "tiny:docker"], busyboxLayer());
  assert.equal(made.status, 0, String(made.stderr));
  await using daemon = await startDaemon({ env: engine.env });
  await using client = await connect({ socket: daemon.socket });
  const image = await client.images.import({ docker: "tiny:docker" });
  assert.equal(image.name, "tiny:docker");
  const saved = join(temporaryDirectory(self()), "saved.tar");
  assert.equal(docker(["save", "-o", saved, "tiny:docker"]).status, 0);
  assert.equal((await client.images.import({ path: saved }, { name: "saved:1" })).id, image.id);
  const { stdout } = await client.run(["sh", "-c", "pwd; echo $FROM_IMAGE"], { spec: { image: "saved:1" } });
  assert.equal(stdout.text, "/app\ndocker\n");
  await assert.rejects(client.images.import({ docker: "nothing:1" }), { code: "IMAGE_NOT_FOUND" });
});
