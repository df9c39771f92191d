// A machine whose kernel hands every crash to a program, which runs as root outside of any sandbox: it hears of no crash inside one.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { conform } from "../drivers/conform.ts";
import { makeProject } from "../e2e/workspace/project.ts";
import { type CrashHandler, handleCrashes, whyNoCrashHandler } from "../support/crash-handler.ts";
import { self, temporaryDirectory } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";

const skip = whyNoCrashHandler();
// Other crashes of the machine are told, too: the names say which are ours.
const [inside, outside] = ["crash-inside", "crash-outside"];
const dir = temporaryDirectory(self(), "caisson-crashes-");
chmodSync(dir, 0o755);
execFileSync("gcc", ["-static", "-o", join(dir, inside), join(import.meta.dirname, "crash.c")]);
copyFileSync(join(dir, inside), join(dir, outside));

const ways = ["fault", "abort", "quit", "dumpable", "no limit", "limit 0", "all memory"];
const saying = (what: string) => ways.map((way) => `${way}: ${what}\n`).join("");

let handler: CrashHandler | undefined;
before(async () => {
  if (!skip) handler = await handleCrashes(dir);
});
after(() => handler?.[Symbol.asyncDispose]());

/** Crashes on the host itself, and what the handler has heard of once it has heard of all of these. */
async function heard(): Promise<string[]> {
  const known = handler!.crashes().filter(({ program }) => program === outside).length;
  const { stdout } = spawnSync(join(dir, outside), { encoding: "utf8", cwd: dir });
  assert.equal(stdout, saying("dumped"), "outside, it is run for every crash, whatever the limit");
  const crashes = await eventually(
    () => handler!.crashes(),
    (crashes) => crashes.filter(({ program }) => program === outside).length >= known + ways.length,
    { what: "the handler" },
  );
  return crashes.map(({ program }) => program);
}

await conform(({ account, box }) => {
  it("nothing is run on the host for a crash inside, whatever the program does about its limits", {
    skip,
  }, async () => {
    using project = makeProject(account);
    const program = join(project.dir, inside);
    copyFileSync(join(dir, inside), program);
    chmodSync(program, 0o755);
    await using sandbox = await box({ workspace: { dir: project.dir, mode: "copy" } });
    const limit = sandbox.info.enforced!.mechanisms.find(({ name }) => name === "limit.core");
    assert.equal(limit?.state, "enforced");
    const { stdout, stderr } = await sandbox.run([program]);
    assert.equal(stdout.text, saying("gone"), stderr.text);
    assert.ok(!(await heard()).includes(inside));
  });
});
