// Kills whoever applies, at random points. Whatever is killed, afterwards an apply is whole or has not happened.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Box, connect } from "@caisson/client";
import { accounts } from "../../support/daemon.ts";
import { sleep } from "../../support/eventually.ts";
import { killIfLiving } from "../../support/kill.ts";
import { listing, makeProject, type Project, type Subject, sameTree, subject } from "./project.ts";

const rounds = Number(process.env.CAISSON_ROUNDS ?? 4);
const files = 800;

const seedProject = `for i in $(seq ${files}); do echo "old $i" > f$i; done; mkdir -p dir/deep; echo x > dir/deep/x; ln -s f1 link`;
const work = `
  for i in $(seq ${files}); do echo "new $i" > f$i; done
  rm -r dir f7 f8; echo now a file > dir; rm link; mkdir link; echo y > link/y; mkdir -p made/here; ln -s ../f2 made/here/to
  chmod 755 f9; mv f10 made/f10`;

/** The helper that works for a daemon on this project. */
function helperOf(daemon: number): number | undefined {
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      if (parent !== daemon) continue;
      if (readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0")[1] === "workspace") return Number(name);
    } catch {
      // It ended while it was looked at.
    }
  }
  return undefined;
}

for (const account of accounts()) {
  describe(`applies that are killed, as ${account.name}`, { timeout: 280_000 }, () => {
    let at: Subject;
    /** How long an apply takes that nobody disturbs, in milliseconds. */
    let usual = 0;
    before(async () => {
      at = await subject(account);
      using project = makeProject(account, seedProject);
      const { box } = await worked(project);
      const started = performance.now();
      await box.workspace.apply();
      usual = performance.now() - started;
      await box.delete();
    });
    after(() => at[Symbol.asyncDispose]());

    const worked = async (project: Project): Promise<{ box: Box; seen: string }> => {
      const box = await at.client.create({ workspace: { dir: project.dir, mode: "overlay" } });
      const result = await box.run(["bash", "-c", `${work}\n${listing}`], { cwd: project.dir });
      assert.equal(result.code, 0, result.stderr.text);
      return { box, seen: Buffer.from(result.stdout.bytes).toString("latin1") };
    };

    const clean = (project: Project, box: Box) => {
      assert.deepEqual(
        readdirSync(project.dir).filter((name) => name.startsWith(".caisson")),
        [],
        "nothing is left in the project",
      );
      const applies = join(at.daemon.home, "sandboxes", box.id, "layer/applies");
      for (const id of existsSync(applies) ? readdirSync(applies) : []) {
        assert.ok(!readdirSync(join(applies, id)).includes("journal"), "no journal is left open");
      }
    };

    it("ends in one or the other when the helper is killed", async () => {
      const ends = { whole: 0, untouched: 0 };
      for (let round = 0; round < rounds; round++) {
        using project = makeProject(account, seedProject);
        const before = project.list();
        const { box, seen } = await worked(project);
        const applying = box.workspace.apply().then(
          (result) => result,
          (error: Error) => error,
        );
        let ended = false;
        void applying.then(() => {
          ended = true;
        });
        // The second helper is the one that applies; the first looks for what there is.
        await sleep(Math.random() * usual);
        while (!ended) {
          const pid = helperOf(at.daemon.child.pid!);
          if (pid !== undefined) {
            killIfLiving(pid);
            break;
          }
          await sleep(1);
        }
        const result = await applying;
        const now = project.list();
        if (result instanceof Error) {
          sameTree(now, before, `round ${round}: the call failed, so nothing has happened`);
          ends.untouched++;
        } else {
          sameTree(now, seen, `round ${round}: the call succeeded, so everything has happened`);
          ends.whole++;
        }
        clean(project, box);
        await box.workspace.apply();
        sameTree(project.list(), seen, `round ${round}: repeated`);
        await box.workspace.undo();
        sameTree(project.list(), before, `round ${round}: taken back`);
        await box.delete();
      }
      assert.equal(ends.whole + ends.untouched, rounds);
    });

    it("ends in one or the other when the daemon and its helper are killed", async () => {
      for (let round = 0; round < rounds; round++) {
        using project = makeProject(account, seedProject);
        const before = project.list();
        const { box, seen } = await worked(project);
        const applying = box.workspace.apply().catch(() => undefined);
        await sleep(Math.random() * usual);
        const helper = helperOf(at.daemon.child.pid!);
        if (helper !== undefined) killIfLiving(helper);
        await at.daemon.crash();
        await applying;
        await at.daemon.restart();
        at.client = await connect({ socket: at.daemon.socket });
        const now = project.list();
        if (now !== before) sameTree(now, seen, `round ${round}: if it has happened, then all of it`);
        const again = at.client.sandboxes.at(box.id);
        const { applyId } = await again.workspace.apply();
        assert.equal(applyId !== "", now === before, "what was completed is not applied twice");
        clean(project, again);
        sameTree(project.list(), seen, `round ${round}: repeated`);
        await again.workspace.undo();
        sameTree(project.list(), before, `round ${round}: taken back`);
        await again.delete();
      }
    });
  });
}
