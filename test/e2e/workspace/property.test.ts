import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Box } from "@caisson/client";
import { accounts } from "../../support/daemon.ts";
import { edits } from "./edits.ts";
import { listing, makeProject, type Project, type Subject, sameTree, subject } from "./project.ts";

/** The same sequences in each run, so that a change is blamed for what it did; `CAISSON_ROUNDS` asks for as many others,
 * and `CAISSON_SEED` repeats one. */
const { CAISSON_SEED, CAISSON_ROUNDS } = process.env;
const first = Number(CAISSON_SEED ?? (CAISSON_ROUNDS ? Math.floor(Math.random() * 1e9) : 998_546_198));
const rounds = Number(CAISSON_ROUNDS ?? (CAISSON_SEED ? 1 : 6));

/** Contents are compared by whoever may read them. */
const readable = "find . -type f -exec chmod u+rw {} +";
/** Git does not know them, and leaves them in the way. */
const withoutEmpty = "find . -mindepth 1 -type d -empty -delete";
/** Files with their contents, whether they can be executed, and links. */
const whatGitKnows = `
  find . -path ./.git -prune -o -type l -printf 'l %P -> %l\\0' -o -type f -perm -u=x -printf 'x %P\\0' -o -type f -printf 'f %P\\0' |
    LC_ALL=C sort -z | tr '\\0' '\\n'
  find . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum -b --
`;

for (const [account, mode] of accounts().flatMap((who) =>
  (["overlay", "copy"] as const).map((how) => [who, how] as const),
)) {
  describe(`a project as ${mode}, as ${account.name}`, { timeout: 200_000 + rounds * 20_000 }, () => {
    let at: Subject;
    before(async () => {
      at = await subject(account);
    });
    after(() => at[Symbol.asyncDispose]());

    const inside = async (box: Box, script: string) => {
      const result = await box.run(["bash", "-c", script], { cwd: box.info.workspace!.dir });
      assert.equal(result.code, 0, result.stderr.text);
      return Buffer.from(result.stdout.bytes).toString("latin1");
    };

    const attached = (project: Project) => at.client.create({ workspace: { dir: project.dir, mode } });

    const takenBack = async (box: Box, seed: number) => {
      const { files } = await box.workspace.undo();
      const left = files.filter(({ outcome }) => outcome !== "applied");
      assert.deepEqual(left, [], `seed ${seed}: an undo leaves nothing`);
    };

    it("brings exactly the tree that the sandbox saw, and takes it back", async () => {
      for (let seed = first; seed < first + rounds; seed++) {
        using project = makeProject(account, edits(seed ^ 0x5eed, 80));
        const [listed, before] = [project.list(), project.listEverything()];
        const box = await attached(project);
        // Twice, with an apply between: a session goes on after an apply.
        await inside(box, edits(seed, 60));
        const seen = await inside(box, listing);
        sameTree(project.listEverything(), before, `seed ${seed}: nothing has touched the project`);
        const changes = await box.workspace.diff();
        const result = await box.workspace.apply();
        assert.deepEqual(
          result.files.filter(({ outcome }) => outcome !== "applied"),
          [],
          `seed ${seed}`,
        );
        sameTree(project.list(), seen, `seed ${seed}: ${changes.length} changes`);
        assert.deepEqual([...(await box.workspace.diff())], [], `seed ${seed}: nothing is left to apply`);
        const again = await box.workspace.apply();
        assert.deepEqual([again.applyId, again.applied], ["", 0], `seed ${seed}`);

        await inside(box, edits(seed + 1, 20));
        const later = await inside(box, listing);
        const second = await box.workspace.apply();
        sameTree(project.list(), later, `seed ${seed}: the second apply`);
        if (second.applyId) {
          await takenBack(box, seed);
          sameTree(project.list(), seen, `seed ${seed}: the second apply taken back`);
        }
        if (result.applyId) await takenBack(box, seed);
        sameTree(project.list(), listed, `seed ${seed}: everything taken back`);
        const repeated = await box.workspace.apply();
        assert.equal(repeated.conflicts, 0, `seed ${seed}: what undo restored is no change of the host's`);
        sameTree(project.list(), later, `seed ${seed}: applied once more`);
        await box.delete();
      }
    });

    it("exports a patch of which git makes the tree that the sandbox saw", async () => {
      for (let seed = first; seed < first + Math.ceil(rounds / 2); seed++) {
        using project = makeProject(account, `${edits(seed ^ 0x5eed, 80)}\n${readable}\n${withoutEmpty}`);
        using copy = makeProject(account, `cp -aT ${project.dir} .; git init -q`);
        const box = await attached(project);
        await inside(box, `${edits(seed, 60)}\n${readable}`);
        const seen = await inside(box, whatGitKnows);
        const patch = join(copy.dir, ".git/patch");
        writeFileSync(patch, Buffer.concat(await Array.fromAsync(box.workspace.export())));
        if (statSync(patch).size > 0) copy.sh(`git apply --whitespace=nowarn .git/patch`);
        sameTree(copy.sh(whatGitKnows), seen, `seed ${seed}`);
        await box.delete();
      }
    });

    it("leaves the project bit for bit as it was when changes are discarded", async () => {
      for (let seed = first; seed < first + Math.ceil(rounds / 3); seed++) {
        using project = makeProject(account, edits(seed ^ 0x5eed, 80));
        const before = project.listEverything();
        const box = await attached(project);
        await inside(box, edits(seed, 60));
        await box.workspace.diff({ patch: true });
        await box.workspace.apply({ dryRun: true });
        await box.delete();
        await box.workspace.discard();
        assert.deepEqual([...(await box.workspace.diff())], []);
        sameTree(project.listEverything(), before, `seed ${seed}`);
      }
    });
  });
}
