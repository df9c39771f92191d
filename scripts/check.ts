// `npm run check`: everything that can be said about the code without running it.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

export interface Check {
  name: string;
  command: string;
  args: string[];
  cwd?: string;
}

export const checks: Check[] = [
  { name: "types", command: "tsc", args: ["-p", "."] },
  { name: "lint and format", command: "biome", args: ["ci", "--colors=off", "."] },
  { name: "layers", command: "node", args: ["scripts/layers.ts"] },
  { name: "contract", command: "node", args: ["scripts/contract.ts"] },
  { name: "rust format", command: "cargo", args: ["fmt", "--check"], cwd: "guest" },
  {
    name: "rust lint",
    command: "cargo",
    args: ["clippy", "--quiet", "--locked", "--all-targets", "--", "-D", "warnings"],
    cwd: "guest",
  },
];

/** Runs one check; true when it passed. */
export function runCheck(check: Check): boolean {
  const result = spawnSync(check.command, check.args, {
    cwd: join(root, check.cwd ?? "."),
    env: { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}` },
    stdio: ["ignore", "inherit", "inherit"],
  });
  return result.status === 0;
}

if (import.meta.main) {
  const only = process.argv.slice(2);
  const failed = checks.filter((check) => {
    if (only.length > 0 && !only.includes(check.name)) return false;
    console.log(`• ${check.name}`);
    return !runCheck(check);
  });
  if (failed.length > 0) {
    console.error(`failed: ${failed.map((check) => check.name).join(", ")}`);
    process.exit(1);
  }
}
