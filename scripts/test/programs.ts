// The programs that check and test: each is run to its end, and what it says is kept.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { within } from "../../test/support/dose.ts";
import type { Check } from "../check.ts";
import type { Result } from "./lanes.ts";
import type { Outcome } from "./tally.ts";

const root = join(import.meta.dirname, "../..");

interface Ended {
  status: number | NodeJS.Signals;
  said: string;
}

function runProgram(command: string, args: readonly string[], cwd: string): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    const said: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => said.push(data));
    child.once("error", reject);
    child.once("close", (code, signal) =>
      resolve({ status: code ?? signal!, said: Buffer.concat(said).toString() }),
    );
  });
}

export async function runCheck(check: Check): Promise<Result> {
  const { status, said } = await runProgram(check.command, check.args, join(root, check.cwd ?? "."));
  return { outcomes: [{ outcome: status === 0 ? "passed" : "failed", name: `check: ${check.name}` }], said };
}

export async function runCargo(): Promise<Result> {
  const { status, said } = await runProgram("cargo", ["test", "--quiet", "--locked"], join(root, "guest"));
  const outcomes: Outcome[] = [];
  const add = (count: string, outcome: Outcome) => {
    for (let i = 0; i < Number(count); i++) outcomes.push(outcome);
  };
  for (const [, passed, failed, ignored] of said.matchAll(
    /test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored/g,
  )) {
    add(passed!, { outcome: "passed", name: "cargo test" });
    add(failed!, { outcome: "failed", name: "cargo test" });
    add(ignored!, { outcome: "skipped", name: "cargo test", reason: "it measures, and is run by hand" });
  }
  if (status !== 0 && !outcomes.some(({ outcome }) => outcome === "failed"))
    outcomes.push({ outcome: "failed", name: `cargo test ended with ${status}` });
  return { outcomes, said };
}

let files = 0;

/** Runs node:test over files, one after the other. */
export async function runNode(paths: readonly string[], scratch: string): Promise<Result> {
  const counts = join(scratch, `counts-${files++}`);
  const { status, said } = await runProgram(
    "node",
    [
      "--test",
      "--no-warnings",
      "--test-concurrency=1",
      `--test-timeout=${within(300_000)}`,
      "--test-reporter=dot",
      "--test-reporter-destination=stdout",
      `--test-reporter=${join(root, "scripts/test/counter.ts")}`,
      `--test-reporter-destination=${counts}`,
      ...paths,
    ],
    root,
  );
  const lines = existsSync(counts) ? readFileSync(counts, "utf8").split("\n").filter(Boolean) : [];
  rmSync(counts, { force: true });
  const outcomes = lines.map((line): Outcome => JSON.parse(line));
  if (status !== 0 && !outcomes.some(({ outcome }) => outcome === "failed"))
    outcomes.push({ outcome: "failed", name: `${paths.join(" ")}: node --test ended with ${status}` });
  // The dots say what the counts say.
  return { outcomes, said: said.replace(/^[.X]+$/gm, "").trim() };
}
