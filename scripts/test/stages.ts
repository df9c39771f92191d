// The stages of `npm test`, and the jobs of each.
import { globSync } from "node:fs";
import { join } from "node:path";
import { isFull } from "../../test/support/dose.ts";
import { checks } from "../check.ts";
import type { Job } from "./lanes.ts";
import { runCargo, runCheck, runNode } from "./programs.ts";

const root = join(import.meta.dirname, "../..");

/** Where the tests of each stage are. */
const files: Record<string, string[]> = {
  drivers: ["test/drivers/**/*.test.ts"],
  security: ["test/security/**/*.test.ts"],
  e2e: ["test/e2e/**/*.test.ts", "test/interop/**/*.test.ts"],
  faults: ["test/faults/**/*.test.ts"],
  conformance: ["conformance/**/*.test.ts"],
  docs: ["test/docs/**/*.test.ts"],
  unit: ["packages/*/src/**/*.test.ts", "packages/*/test/**/*.test.ts", "scripts/**/*.test.ts"],
};

/** Tests of every driver, wherever they are: an engine, and machines that are emulated. */
const ofDrivers = /^test\/(drivers\/|security\/(modes|crashes|wall\/tiers)|faults\/(docker|microvm))/;

/** What takes many minutes. */
const ofFullDose = /\.full\.test\.ts$/;

/** Unit tests are short; a process for each that only counts would be a part of the whole. */
const unitFilesAtOnce = 10;

export const stageNames = ["checks", "guest", ...Object.keys(files)];

/** The jobs of the stages, in the order in which they are best begun: what takes long first. */
export function jobsOf(stages: readonly string[], scratch: string): Job[] {
  const jobs: Job[] = [];
  if (stages.includes("checks"))
    for (const check of checks)
      jobs.push({
        stage: "checks",
        title: check.name,
        ...(check.command === "cargo" ? { kind: "cargo" } : {}),
        run: () => runCheck(check),
      });
  if (stages.includes("guest"))
    jobs.push({ stage: "guest", title: "cargo test", kind: "cargo", run: runCargo });
  for (const [stage, patterns] of Object.entries(files)) {
    if (!stages.includes(stage)) continue;
    const paths = patterns
      .flatMap((pattern) => globSync(pattern, { cwd: root }))
      .filter((path) => isFull() || !ofFullDose.test(path))
      .sort();
    for (const group of groups(paths, stage === "unit" ? unitFilesAtOnce : 1))
      jobs.push({
        stage,
        title: group.length === 1 ? group[0]! : `${group[0]} and ${group.length - 1} more`,
        ...(ofDrivers.test(group[0]!) ? { kind: "drivers" } : {}),
        run: () => runNode(group, scratch),
      });
  }
  return jobs;
}

function groups<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}
