// Runs every check and test and ends with one line: N passed, N failed, N skipped.
// `npm test -- NAME…` runs only the stages of these names.
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checks, runCheck } from "./check.ts";

const root = join(import.meta.dirname, "..");

interface Total {
  passed: number;
  failed: number;
  skipped: number;
  failures: string[];
  skips: string[];
}

const total: Total = { passed: 0, failed: 0, skipped: 0, failures: [], skips: [] };

function runChecks(): void {
  for (const check of checks) {
    console.log(`• ${check.name}`);
    if (runCheck(check)) total.passed++;
    else fail(`check: ${check.name}`);
  }
}

function fail(what: string): void {
  total.failed++;
  total.failures.push(what);
}

/** Runs node:test over the files that match, `jobs` of them at once. */
function runNode(patterns: string[], jobs: number): void {
  const files = patterns.flatMap((pattern) => globSync(pattern, { cwd: root })).sort();
  if (files.length === 0) return;
  const scratch = mkdtempSync(join(tmpdir(), "caisson-test-"));
  const counts = join(scratch, "counts");
  const result = spawnSync(
    "node",
    [
      "--test",
      "--no-warnings",
      `--test-concurrency=${jobs}`,
      "--test-timeout=300000",
      "--test-reporter=dot",
      "--test-reporter-destination=stdout",
      `--test-reporter=${join(root, "scripts/test-counter.ts")}`,
      `--test-reporter-destination=${counts}`,
      ...files,
    ],
    { cwd: root, stdio: ["ignore", "inherit", "inherit"] },
  );
  const lines = existsSync(counts) ? readFileSync(counts, "utf8").split("\n").filter(Boolean) : [];
  rmSync(scratch, { recursive: true });
  let failed = 0;
  for (const line of lines) {
    const { outcome, name, file, reason } = JSON.parse(line);
    if (outcome === "passed") total.passed++;
    else if (outcome === "failed") {
      failed++;
      fail(`${file}: ${name}`);
    } else {
      total.skipped++;
      total.skips.push(`${name}: ${reason ?? "no reason given"}`);
    }
  }
  if (result.status !== 0 && failed === 0) fail(`node --test ended with ${result.status ?? result.signal}`);
}

function runCargo(): void {
  const result = spawnSync("cargo", ["test", "--quiet", "--locked"], {
    cwd: join(root, "guest"),
    encoding: "utf8",
    maxBuffer: 64 << 20,
  });
  for (const [, passed, failed, ignored] of result.stdout.matchAll(
    /test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored/g,
  )) {
    total.passed += Number(passed);
    for (let i = 0; i < Number(failed); i++) fail("cargo test");
    total.skipped += Number(ignored);
    if (ignored !== "0")
      total.skips.push(`cargo test: ${ignored} ignored: they measure, and are run by hand`);
  }
  if (result.status !== 0) {
    console.log(result.stdout, result.stderr);
    if (total.failed === 0) fail("cargo test");
  }
}

const stages: Record<string, () => void> = {
  checks: runChecks,
  guest: runCargo,
  unit: () =>
    runNode(["packages/*/src/**/*.test.ts", "packages/*/test/**/*.test.ts", "scripts/*.test.ts"], 2),
  e2e: () => runNode(["test/e2e/**/*.test.ts", "test/interop/**/*.test.ts"], 2),
  conformance: () => runNode(["conformance/**/*.test.ts"], 1),
  drivers: () => runNode(["test/drivers/**/*.test.ts"], 1),
  security: () => runNode(["test/security/**/*.test.ts"], 2),
  faults: () => runNode(["test/faults/**/*.test.ts"], 2),
  docs: () => runNode(["test/docs/**/*.test.ts"], 1),
};

const wanted = process.argv.slice(2).filter((arg) => !arg.startsWith("--"));
// Some hundred processes read the same sources.
process.env.NODE_COMPILE_CACHE ??= join(root, ".caisson/compiled");
if (process.argv.includes("--full")) process.env.CAISSON_TEST_FULL = "1";
for (const name of wanted) {
  if (!Object.hasOwn(stages, name)) {
    console.error(`no stage ${name}; there are ${Object.keys(stages).join(", ")}`);
    process.exit(2);
  }
}
for (const [name, run] of Object.entries(stages)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const began = performance.now();
  console.log(`\n== ${name}`);
  run();
  console.log(`\n   ${((performance.now() - began) / 1000).toFixed(0)} s`);
}

for (const failure of total.failures) console.log(`failed: ${failure}`);
for (const skip of total.skips) console.log(`skipped: ${skip}`);
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed > 0 ? 1 : 0);
