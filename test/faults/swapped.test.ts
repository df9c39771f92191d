// A sandbox that swaps a directory and a link that leads out, as fast as it can, while the host works on the same path.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Box, CaissonError, type Run, type WorkspaceMode } from "@caisson/client";
import { makeProject, type Project, type Subject, subject } from "../e2e/workspace/project.ts";
import { accounts, temporaryDirectory } from "../support/daemon.ts";
import { isFull, within } from "../support/dose.ts";
import { tarOf } from "../support/oci-image.ts";

const fileCalls = isFull() ? 10_000 : 300;
const applies = isFull() ? 300 : 10;
const atOnce = 6;
const canary = "canary-4be7";

/** Exchanges the two in one step, so that every other moment is one of either; says how often. What an apply has brought to the
 * project beneath cannot always be exchanged or removed: then another name takes its place. */
const swapper = `
  my $exchange = qx(uname -m) =~ /x86_64/ ? 316 : 276;
  my ($count, $spare, $dir) = (0, 0, "dir");
  until (-e "stop") {
    for my $target (@ARGV) {
      my $link = "link$spare";
      $spare++, next unless symlink $target, $link;
      for (1 .. 2) { $count++ if syscall($exchange, -100, $dir, -100, $link, 2) == 0 }
      unlink $link or $spare++;
    }
  }
  print $count;`;

for (const account of accounts()) {
  describe(`a path that is swapped, as ${account.name}`, { timeout: within(200_000) }, () => {
    let at: Subject;
    let outside: string;
    let untouched: string;
    before(async () => {
      at = await subject(account);
      outside = temporaryDirectory(account, "caisson-outside-");
      chmodSync(outside, 0o777);
      writeFileSync(join(outside, "file"), canary);
      chmodSync(join(outside, "file"), 0o666);
      untouched = look();
    });
    after(() => at[Symbol.asyncDispose]());

    /** Nothing outside was touched. */
    const look = () =>
      spawnSync("find", [outside, "-printf", "%p %m %s %i %T@ %C@\n"], { encoding: "utf8" }).stdout;

    /** A sandbox that swaps; the host sees the same directory, and the link leads to the same place there. */
    const swapping = async (project: Project, mode: WorkspaceMode): Promise<[Box, Run]> => {
      const box = await at.client.create({ workspace: { dir: project.dir, mode } });
      const targets = [outside, `../${basename(outside)}`, `/proc/self/root${outside}`, "/etc", "/proc/self"];
      await box.run(["sh", "-c", "mkdir dir && echo inside > dir/file"], { cwd: project.dir });
      return [box, await box.exec(["perl", "-e", swapper, ...targets], { cwd: project.dir })];
    };

    const swapsOf = async (box: Box, run: Run) => {
      await box.files.write(join(box.info.workspace!.dir, "stop"), "");
      const { code, stdout, stderr } = await run.result();
      assert.equal(code, 0, stderr.text);
      return Number(stdout.text);
    };

    it("never leads a file call out of the sandbox, whatever it reads, writes, moves, packs or removes", async () => {
      using project = makeProject(account);
      const [box, run] = await swapping(project, "bind-write");
      const file = (name: string) => join(project.dir, "dir", name);
      const tar = tarOf([{ name: "made", content: "mine" }]);
      const calls: (() => Promise<unknown>)[] = [
        async () => (await box.files.read(file("file"))).text,
        () => box.files.write(file("file"), "inside\n"),
        () => box.files.write(file("made"), "mine"),
        () => box.files.stat(file("file"), { follow: true }),
        () => box.files.list(join(project.dir, "dir"), { recursive: true }),
        () => box.files.mkdir(file("sub/sub"), { parents: true }),
        () => box.files.move(file("made"), file("moved"), { overwrite: true }),
        () => box.files.upload(join(project.dir, "dir"), tar),
        async () =>
          Buffer.concat(await Array.fromAsync(box.files.download(join(project.dir, "dir")))).toString(),
        () => box.files.remove(file("sub"), { recursive: true }),
      ];
      const outcomes = { done: 0, refused: 0 };
      let next = 0;
      const work = async () => {
        while (next < fileCalls) {
          const call = calls[next++ % calls.length]!;
          const answer = await call().catch((error) => CaissonError.from(error));
          if (answer instanceof CaissonError) {
            assert.notEqual(answer.code, "INTERNAL", answer.message);
            outcomes.refused++;
          } else {
            assert.doesNotMatch(JSON.stringify(answer) ?? "", new RegExp(canary));
            outcomes.done++;
          }
        }
      };
      await Promise.all(Array.from({ length: atOnce }, work));
      assert.ok((await swapsOf(box, run)) > 0);
      assert.ok(outcomes.done > 0, JSON.stringify(outcomes));
      assert.equal(look(), untouched);
      await box.delete();
    });

    it("never leads diff or apply out of the layer or the project", async () => {
      using project = makeProject(account, "echo 1 > kept");
      const [box, run] = await swapping(project, "overlay");
      for (let round = 0; round < applies; round++) {
        // What does not stand still may be refused; what is said must not come from outside.
        const said = await Promise.all([
          box.workspace.diff({ patch: true }).then((changes) => JSON.stringify([...changes]), String),
          box.workspace.apply().then((result) => JSON.stringify(result.files), String),
        ]);
        assert.doesNotMatch(said.join(), new RegExp(canary));
        assert.equal(look(), untouched);
      }
      assert.ok((await swapsOf(box, run)) > 0);
      assert.equal(spawnSync("grep", ["-rl", canary, project.dir], { encoding: "utf8" }).stdout, "");
      assert.equal(spawnSync("find", [project.dir, "-type", "l"], { encoding: "utf8" }).stdout, "");
      assert.equal(look(), untouched);
      await box.delete();
    });
  });
}
