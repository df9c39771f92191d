// Runs every check and test and ends with one line: N passed, N failed, N skipped.
// `npm test -- NAME…` runs only the stages of these names, `--full` with the full dose of faults. `CAISSON_TEST_JOBS`: how many
// test files at once.
import { chmodSync, mkdtempSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { ordinaryUser } from "../test/support/daemon.ts";
import { containersOf } from "../test/support/dockerd.ts";
import { canStartEngine, startEngine } from "../test/support/engine.ts";
import { removeTree } from "../test/support/remove-tree.ts";
import { runJobs } from "./test/lanes.ts";
import { leftoversIn } from "./test/leftovers.ts";
import { jobsOf, stageNames } from "./test/stages.ts";
import { inWords, Tally } from "./test/tally.ts";

const root = join(import.meta.dirname, "..");
const wanted = process.argv.slice(2).filter((arg) => !arg.startsWith("--"));
const unknown = wanted.find((name) => !stageNames.includes(name));
if (unknown !== undefined) {
  console.error(`no stage ${unknown}; there are ${stageNames.join(", ")}`);
  process.exit(2);
}
const stages = wanted.length > 0 ? wanted : stageNames;
if (process.argv.includes("--full")) process.env.CAISSON_TEST_FULL = "1";
// They wait for other processes much of the time.
const lanes = Number(process.env.CAISSON_TEST_JOBS ?? availableParallelism() + 1);

// Everything that tests make is below one directory, for every user.
const scratch = mkdtempSync("/tmp/caisson-");
chmodSync(scratch, 0o1777);
process.env.TMPDIR = scratch;
process.env.CAISSON_TEST_SHARED = scratch;
// Some hundred processes read the same sources.
process.env.NODE_COMPILE_CACHE ??= join(root, ".caisson/compiled");
// One copy for all, where an ordinary user cannot read this one.
process.env.CAISSON_TEST_ROOT = ordinaryUser().root;

const jobs = jobsOf(stages, scratch);
// One engine for all tests of drivers; those that kill engines have their own.
const engine =
  canStartEngine() && jobs.some(({ kind }) => kind === "drivers") ? await startEngine() : undefined;
if (engine) process.env.CAISSON_TEST_ENGINE_SOCKET = engine.socket;

const began = performance.now();
const tally = new Tally();
const times: { title: string; seconds: number }[] = [];
await runJobs(jobs, lanes, (job, { outcomes, said }, seconds) => {
  tally.add(outcomes);
  times.push({ title: job.title, seconds });
  const failed = outcomes.some(({ outcome }) => outcome === "failed");
  if (failed) console.log(`\n${said}\n`);
  const at = ((performance.now() - began) / 1000).toFixed(0).padStart(4);
  console.log(`${at} s  ${job.stage} · ${job.title} (${seconds.toFixed(1)} s): ${inWords(outcomes)}`);
});

const left: string[] = [];
if (engine) {
  left.push(...(await containersOf(engine.socket)).map((name) => `container ${name}`));
  await engine[Symbol.asyncDispose]();
}
// What other programs keep in a temporary directory is theirs.
const ours = /^(caisson|firecracker-peer)-(?!copy-|tests-compiled-)/;
left.push(...(await leftoversIn(scratch, ours)));
for (const what of left) tally.add([{ outcome: "failed", name: `left behind: ${what}` }]);
removeTree(scratch);

console.log("\nslowest:");
for (const { title, seconds } of times.sort((a, b) => b.seconds - a.seconds).slice(0, 15))
  console.log(`${seconds.toFixed(1).padStart(7)} s  ${title}`);
tally.print();
process.exit(tally.failed > 0 ? 1 : 0);
