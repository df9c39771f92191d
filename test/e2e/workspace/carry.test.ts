// Changes carried elsewhere: exported, rebased, forced; what is shown of them; projects that are written directly.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { accounts } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";
import { makeProject, type Subject, sameTree, subject } from "./project.ts";

const repository =
  "git init -q . && git config user.name A && git config user.email a@example.org && git config core.autocrlf false && ";
const commit = "git add -A && git commit -qm first && sleep 1.1";

async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

for (const account of accounts()) {
  describe(`changes as ${account.name}`, { timeout: 240_000 }, () => {
    let it: Subject;
    before(async () => {
      it = await subject(account);
    });
    after(() => it[Symbol.asyncDispose]());

    const kept = async (what: string) =>
      (await it.client.system.usage()).find((item) => item.what === what)?.count;
    /** A sandbox ends after its command's exit was told, and uses what it has until then. */
    const pruned = (what: "caches" | "agents", left: number) =>
      eventually(
        async () => {
          await it.client.system.prune({ agents: what === "agents" });
          return kept(what);
        },
        (count) => count === left,
      );

    test("a patch carries text, binary files, modes, links, renames and deletions to a clone", async () => {
      using project = makeProject(
        account,
        `${repository}printf 'a\\nb\\nc\\n' > text; head -c 5000 /dev/urandom > binary; echo x > gone; ln -s text link; ` +
          `seq 500 > moved; head -c 300 /dev/urandom > gone-binary; echo s > script; ${commit}`,
      );
      const box = await it.client.create({ workspace: { dir: project.dir } });
      await box.run([
        "bash",
        "-c",
        "sed -i s/b/B/ text; head -c 7000 /dev/urandom > binary; rm gone gone-binary; ln -sfn binary link; mv moved 'new name'; " +
          "head -c 100 /dev/zero > 'zero s'; chmod +x script; mkdir -p deep/er; printf 'no newline' > deep/er/é; touch empty",
      ]);
      const patch = await collect(box.workspace.export());
      using clone = makeProject(account, `git clone -q ${project.dir} . `);
      const applied = spawnSync("git", ["apply", "--binary", "-"], {
        cwd: clone.dir,
        input: patch,
        uid: account.uid,
        gid: account.gid,
        encoding: "utf8",
      });
      assert.equal(applied.status, 0, applied.stderr);
      await box.workspace.apply();
      const files = (list: string) => list.replace(/^. \d* ?\.git.*\n|^[0-9a-f]{64} \*\.\/\.git\/.*\n/gm, "");
      sameTree(files(clone.list()), files(project.list()), "the patched clone");
    });

    test("an archive is a layer: what is new, and marks for what is gone", async () => {
      using project = makeProject(account, "mkdir d; echo 1 > d/gone; echo 2 > changed; echo 3 > same");
      const box = await it.client.create({ workspace: { dir: project.dir } });
      await box.run([
        "sh",
        "-c",
        "rm d/gone; echo 22 > changed; mkdir n; echo 4 > n/new; chmod 0 n/new; ln -s new n/link",
      ]);
      const tar = await collect(box.workspace.export({ format: "tar" }));
      const listed = spawnSync("tar", ["-tf", "-"], { input: tar, encoding: "utf8" });
      assert.deepEqual(listed.stdout.split("\n").filter(Boolean).sort(), [
        "changed",
        "d/.wh.gone",
        "n/",
        "n/link",
        "n/new",
      ]);
      const some = await collect(box.workspace.export({ format: "tar", paths: ["n/**"] }));
      assert.doesNotMatch(
        spawnSync("tar", ["-tf", "-"], { input: some, encoding: "utf8" }).stdout,
        /changed/,
      );
    });

    test("what is ignored is shown unless it is hidden, and pages are whole", async () => {
      using project = makeProject(account, `${repository}echo 'out/' > .gitignore; ${commit}`);
      const box = await it.client.create({ workspace: { dir: project.dir } });
      await box.run([
        "sh",
        "-c",
        "mkdir out; echo 1 > out/a; for i in 1 2 3 4 5 6 7; do echo $i > f$i; done",
      ]);
      const all = (await box.workspace.diff()).map(({ path }) => path);
      assert.ok(all.includes("out/a"));
      const shown = (await box.workspace.diff({ hideIgnored: true })).map(({ path }) => path);
      assert.deepEqual(shown, ["f1", "f2", "f3", "f4", "f5", "f6", "f7"]);
      const paged: string[] = [];
      for (let after = ""; ; after = paged.at(-1)!) {
        const page = await box.workspace.diff({ hideIgnored: true, after, limit: 3 });
        if (page.length === 0) break;
        paged.push(...page.map(({ path }) => path));
      }
      assert.deepEqual(paged, shown);
    });

    test("a rebase merges what it can, keeps both versions of the rest, and touches nothing of the project", async () => {
      using project = makeProject(
        account,
        `${repository}seq 20 > merges; seq 20 > fights; echo a > gone-here; echo b > untouched; ${commit}`,
      );
      for (const mode of ["overlay", "copy"] as const) {
        project.sh("git checkout -q . && sleep 1.1");
        const box = await it.client.create({ workspace: { dir: project.dir, mode } });
        await box.run([
          "sh",
          "-c",
          "sed -i s/^20$/TWENTY/ merges; sed -i s/^5$/SANDBOX/ fights; rm gone-here; echo new > added",
        ]);
        await assert.rejects(box.workspace.rebase(), { code: "WORKSPACE_IN_USE" });
        await box.delete();
        project.sh(
          "sed -i s/^1$/ONE/ merges; sed -i s/^5$/HOST/ fights; echo more >> gone-here; echo c > untouched; echo h > by-host",
        );
        const before = project.listEverything();
        const rebased = await box.workspace.rebase();
        assert.equal(project.listEverything(), before, mode);
        assert.deepEqual(
          rebased.files.map(({ path, outcome }) => `${outcome} ${path}`).sort(),
          ["conflict fights", "conflict gone-here", "merged merges"],
          mode,
        );
        const changes = new Map((await box.workspace.diff()).map((change) => [change.path, change]));
        assert.deepEqual([...changes.keys()].sort(), ["added", "fights", "gone-here", "merges"], mode);
        assert.deepEqual(
          [...changes.values()].filter(({ conflict }) => conflict).map(({ path }) => path),
          ["fights", "gone-here"],
        );
        const applied = await box.workspace.apply();
        assert.deepEqual([applied.applied, applied.conflicts], [2, 2], mode);
        assert.match(project.sh("cat merges"), /ONE[\s\S]*TWENTY/);
        assert.match(project.sh("cat fights"), /HOST/);
        // The sandbox's version is still there to be had.
        assert.match((await collect(box.workspace.export({ paths: ["fights"] }))).toString(), /\+SANDBOX/);
        await assert.rejects(box.workspace.apply({ force: true }), { code: "INVALID_INPUT" });
        const forced = await box.workspace.apply({ paths: ["fights"], force: true });
        assert.deepEqual([forced.applied, forced.conflicts], [1, 0]);
        assert.match(project.sh("cat fights"), /SANDBOX/);
        await box.workspace.undo();
        assert.match(project.sh("cat fights"), /HOST/);
        assert.equal(project.sh("cat by-host untouched"), "h\nc\n");
        await box.workspace.undo();
        project.sh("rm -f by-host added");
      }
    });

    test("a path that cannot be named is refused by itself", async () => {
      using project = makeProject(account, "echo 1 > short");
      const box = await it.client.create({ workspace: { dir: project.dir } });
      const script =
        "import os\nfor _ in range(18):\n  os.mkdir('x' * 250)\n  os.chdir('x' * 250)\nopen('file', 'w').close()";
      const deep = await box.run(["python3", "-c", script]);
      assert.equal(deep.code, 0, deep.stderr.text);
      await box.run(["sh", "-c", "echo 2 > short"]);
      const applied = await box.workspace.apply();
      assert.ok(
        applied.files.some(({ outcome, reason }) => outcome === "refused" && /too long/.test(reason)),
      );
      assert.equal(project.sh("cat short"), "2\n");
    });

    test("a writable bind writes the project itself, is reported as weaker, and never where sockets are", async () => {
      using project = makeProject(account, "echo 1 > file; echo p > prog");
      const workspace = { dir: project.dir, mode: "bind-write" } as const;
      const box = await it.client.create({ workspace });
      await box.run([
        "sh",
        "-c",
        "echo 2 > file; echo new > made; chmod 4755 prog; install -m 4755 prog set-id; mkdir -m 2755 d",
      ]);
      assert.equal(project.sh("cat file made"), "2\nnew\n");
      assert.equal(
        project.sh("stat -c %U made; find . -perm /6000"),
        `${account.name === "root" ? "root" : account.name}\n`,
      );
      const { info } = await it.client.sandboxes.get(box.id);
      const report = new Map(info.enforced!.mechanisms.map((mechanism) => [mechanism.name, mechanism]));
      assert.deepEqual(
        [report.get("workspace")?.state, report.get("sockets.host")?.state],
        ["not enforced", "not enforced"],
      );
      await assert.rejects(box.workspace.diff(), { code: "NO_WORKSPACE" });
      const server = createServer().listen(join(project.dir, "door"));
      try {
        const refused = await it.client.create({ workspace }).catch((error) => error);
        assert.equal(refused.code, "WORKSPACE_REFUSED");
        assert.match(refused.message, /workspace\.sockets: .*door/);
      } finally {
        server.close();
      }
      assert.ok(await it.client.create({ workspace: { dir: project.dir, mode: "bind" } }));
    });

    // Only root can leave something in a user's project that the user cannot open.
    if (account.uid !== process.getuid!())
      test("what cannot be looked into is named, where all of the project is looked at", async () => {
        using project = makeProject(account, "echo 1 > file; mkdir open");
        const closed = join(project.dir, "open/closed");
        mkdirSync(closed, { mode: 0o700 });
        for (const mode of ["copy", "bind-write"] as const) {
          const refused = await it.client.create({ workspace: { dir: project.dir, mode } }).catch((e) => e);
          assert.equal(refused.code, "WORKSPACE_REFUSED", refused.message);
          assert.match(refused.message, /workspace\.readable: open\/closed cannot be read/);
        }
      });

    test("caches are kept per project on request, shared with nobody, counted and freed", async () => {
      using one = makeProject(account);
      using other = makeProject(account);
      const run = (dir: string, script: string, caches?: string[]) =>
        it.client.run(["sh", "-c", script], { spec: { workspace: { dir }, ...(caches ? { caches } : {}) } });
      const write =
        "mkdir -p ~/.npm/_cacache && echo kept > ~/.npm/_cacache/x && echo m > ~/.m2/repository/y";
      assert.equal((await run(one.dir, write, ["npm", "maven"])).code, 0);
      assert.equal(
        (await run(one.dir, "cat ~/.npm/_cacache/x ~/.m2/repository/y", ["all"])).stdout.text,
        "kept\nm\n",
      );
      assert.notEqual((await run(other.dir, "cat ~/.npm/_cacache/x", ["npm"])).code, 0);
      assert.notEqual((await run(one.dir, "cat ~/.npm/_cacache/x")).code, 0);
      await assert.rejects(run(one.dir, "true", ["nothing"]), { code: "INVALID_INPUT" });
      await assert.rejects(it.client.create({ caches: ["npm"] }), { code: "INVALID_INPUT" });
      assert.equal(await kept("caches"), 2);
      const living = await it.client.create({ workspace: { dir: one.dir }, caches: ["npm"] });
      await pruned("caches", 1);
      assert.equal((await living.run(["sh", "-c", "cat ~/.npm/_cacache/x"])).stdout.text, "kept\n");
      await living.delete();
      await pruned("caches", 0);
    });

    test("agents' own directories are kept per project on request, and freed only when they are named", async () => {
      using one = makeProject(account);
      using other = makeProject(account);
      const run = (dir: string, script: string, caches: string[]) =>
        it.client.run(["sh", "-c", script], { spec: { workspace: { dir }, caches } });
      const agents = ["claude", "codex", "gemini"];
      const write = `for agent in ${agents.join(" ")}; do echo kept > ~/.$agent/mark; done; echo $CLAUDE_CONFIG_DIR`;
      assert.equal((await run(one.dir, write, agents)).stdout.text, "/home/agent/.claude\n");
      const read = "cat ~/.claude/mark ~/.codex/mark ~/.gemini/mark 2>/dev/null";
      await it.client.system.prune();
      assert.equal((await run(one.dir, read, agents)).stdout.text, "kept\nkept\nkept\n");
      assert.equal((await run(one.dir, read, ["all"])).stdout.text, "", "all are those of package managers");
      assert.equal((await run(other.dir, read, agents)).stdout.text, "");
      assert.equal(await kept("agents"), 2);
      await pruned("agents", 0);
    });
  });
}
