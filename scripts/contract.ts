// `npm run contract`: everything that must hold of the contract, each with a line that says whether it does.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";

const root = join(import.meta.dirname, "..");

/** Thrown by a check that cannot be made here. */
class Skipped extends Error {}

const checks: [name: string, check: () => void | Promise<void>][] = [
  ["buf lint", () => void run("buf", ["lint"])],
  ["buf format", () => void run("buf", ["format", "--diff", "--exit-code", "proto"])],
  ["buf breaking against the commit before", checkBreaking],
  ["generated code is up to date", () => void run("node", ["scripts/generate.ts", "--check"])],
  ["OpenAPI document is valid", checkOpenapi],
];

function run(command: string, args: string[]): string {
  const env = { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}` };
  try {
    return execFileSync(command, args, {
      cwd: root,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (thrown) {
    const { stdout, stderr } = thrown as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")}\n${stdout ?? ""}${stderr ?? ""}`);
  }
}

/** Compares what is in the working tree with the contract as the commit before the latest change had it. */
function checkBreaking(): void {
  let commits: string[];
  try {
    commits = run("git", ["log", "--format=%H", "--", "proto", "third_party", "buf.yaml"]).trim().split("\n");
  } catch (thrown) {
    throw new Skipped(`there is no git history here: ${(thrown as Error).message.split("\n").at(-2)}`);
  }
  const dirty = run("git", ["status", "--porcelain", "--", "proto"]).trim() !== "";
  // Uncommitted changes are compared with the latest commit, committed ones with the one before.
  const base = commits[dirty ? 0 : 1];
  if (base === undefined || base === "") throw new Skipped("the contract has no earlier version");
  const scratch = mkdtempSync(join(tmpdir(), "caisson-contract-"));
  try {
    const archive = join(scratch, "before.tar");
    run("git", ["archive", "--output", archive, base, "buf.yaml", "proto", "third_party"]);
    run("buf", ["breaking", "--against", archive]);
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

async function checkOpenapi(): Promise<void> {
  const document = JSON.parse(readFileSync(join(root, "packages/api/src/gen/openapi.json"), "utf8"));
  const validator = new Validator();
  const result = await validator.validate(document);
  if (!result.valid) throw new Error(JSON.stringify(result.errors, null, 2));
  if (validator.version !== "3.1") throw new Error(`it is of version ${validator.version}, not 3.1`);
  // The schema of OpenAPI does not follow references; this does.
  validator.resolveRefs();
}

let failed = false;
for (const [name, check] of checks) {
  try {
    await check();
    console.log(`ok    ${name}`);
  } catch (thrown) {
    if (thrown instanceof Skipped) {
      console.log(`skip  ${name}: ${thrown.message}`);
      continue;
    }
    failed = true;
    console.log(`FAIL  ${name}\n${(thrown as Error).message}`);
  }
}
process.exitCode = failed ? 1 : 0;
