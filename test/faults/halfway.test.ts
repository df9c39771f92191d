// The daemon is killed in the middle of a rebase and of an import: afterwards each is whole or can be repeated, and nothing else has changed.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { connect } from "@caisson/client";
import { makeProject, type Subject, sameTree, subject } from "../e2e/workspace/project.ts";
import { accounts, temporaryDirectory } from "../support/daemon.ts";
import { isFull, within } from "../support/dose.ts";
import { sleep } from "../support/eventually.ts";
import { killIfLiving } from "../support/kill.ts";
import { busyboxLayer, tarOf, writeLayout } from "../support/oci-image.ts";

const rounds = isFull() ? 20 : 2;

for (const account of accounts()) {
  describe(`work that is cut short, as ${account.name}`, { timeout: within(240_000) }, () => {
    let at: Subject;
    before(async () => {
      at = await subject(account);
    });
    after(() => at[Symbol.asyncDispose]());

    /** Kills the daemon some time into the work, with whatever helps it, and starts it again; says how the work ended. */
    async function cut(work: Promise<unknown>, afterMs: number): Promise<"done" | "cut"> {
      const outcome = work.then(
        () => "done" as const,
        () => "cut" as const,
      );
      await Promise.race([sleep(afterMs), outcome]);
      const helpers = spawnSync("pgrep", ["-P", String(at.daemon.child.pid)], { encoding: "utf8" }).stdout;
      await at.daemon.crash();
      for (const pid of helpers.split("\n").filter(Boolean)) killIfLiving(Number(pid));
      const ended = await outcome;
      await at.daemon.restart();
      at.client = await connect({ socket: at.daemon.socket });
      return ended;
    }

    it("a rebase touches nothing of the project, and the next one merges all", async () => {
      const files = 60;
      using project = makeProject(
        account,
        `git init -q . && git config user.name A && git config user.email a@example.org
         for i in $(seq ${files}); do seq 9 > f$i; done; git add . && git commit -qm first && sleep 1.1`,
      );
      const box = await at.client.create({ workspace: { dir: project.dir } });
      await box.run(["sh", "-c", "sed -i s/^9$/inside/ f*; echo new > added"]);
      await box.delete();
      project.sh("sed -i s/^1$/outside/ f*");
      const before = project.listEverything();
      const same = () => at.client.sandboxes.at(box.id).workspace;
      const began = performance.now();
      assert.equal(await cut(same().rebase(), 60_000), "done");
      const usual = performance.now() - began;
      for (let round = 0; round < rounds; round++) {
        await cut(same().rebase(), Math.random() * usual);
        sameTree(project.listEverything(), before, `round ${round}`);
      }
      const rebased = await same().rebase();
      assert.deepEqual(
        rebased.files.filter(({ outcome }) => outcome !== "merged"),
        [],
      );
      const applied = await same().apply();
      assert.deepEqual([applied.applied, applied.conflicts], [files + 1, 0]);
      assert.equal(
        project.sh("cat f* | sort | uniq -c | grep side | tr -s ' '"),
        ` ${files} inside\n ${files} outside\n`,
      );
      await same().undo();
      assert.equal(project.sh("cat f* | grep -c outside; ls added 2>/dev/null || true"), `${files}\n`);
    });

    it("an import is there whole or not at all, and leaves nothing behind that the next one does not clear", async () => {
      const dir = temporaryDirectory(account);
      const many = Array.from({ length: 600 }, (_, i) => ({
        name: `many/${i % 40}/f${i}`,
        content: `${i}`.repeat(2000),
      }));
      writeLayout(dir, {
        name: "big:1",
        layers: [busyboxLayer(), tarOf(many)],
        config: { Env: ["PATH=/bin"] },
        compress: "gzip",
      });
      spawnSync("chmod", ["-R", "a+rX", dir]);
      const importing = () => at.client.images.import({ path: dir });
      const began = performance.now();
      await importing();
      const usual = performance.now() - began;
      const kept = join(at.daemon.home, "images");
      for (let round = 0; round < rounds; round++) {
        await at.client.images.remove("big:1").catch(() => {});
        await at.client.images.collect();
        const ended = await cut(importing(), Math.random() * usual);
        const listed = await at.client.images.list();
        if (ended === "done") assert.equal(listed.length, 1, "what was acknowledged is there");
        if (listed.length === 1) await check();
      }
      await importing();
      await check();
      assert.deepEqual(readdirSync(join(kept, "unfinished")), []);
      await at.client.images.remove("big:1");
      await at.client.images.collect();
      for (const part of ["layers", "roots", "unfinished"])
        assert.deepEqual(readdirSync(join(kept, part)), [], part);
      rmSync(dir, { recursive: true });
    });

    async function check(): Promise<void> {
      const count = await at.client.run(["sh", "-c", "ls /many/* | grep -c f; cat /app/greeting"], {
        spec: { image: "big:1" },
      });
      assert.equal(count.stdout.text, "600\nfrom the image\n", count.stderr.text);
    }
  });
}
