// The real command lines of the agents, from npm, laid out as `npm install --global` with a prefix of its own does it. Kept between
// runs: they are some hundred megabytes.
import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const described = join(import.meta.dirname, "clis");

/** Claude Code's own link would be made by a script of its package. */
const install = `
test ! -e "$1" || exit 0
rm -rf "$1.new"
mkdir -p "$1.new/bin" "$1.new/lib"
cp "$2/package.json" "$2/package-lock.json" "$1.new/lib"
cd "$1.new/lib"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
ln -s ../lib/node_modules/@anthropic-ai/claude-code-linux-${process.arch}/claude ../bin/claude
ln -s ../lib/node_modules/@openai/codex/bin/codex.js ../bin/codex
ln -s ../lib/node_modules/@google/gemini-cli/bundle/gemini.js ../bin/gemini
mv "$1.new" "$1"
`;

/** The directory of programs for a PATH; installs them the first time, while others wait. */
export function agentPrograms(): string {
  const runner = process.getuid!();
  const base = `/var/tmp/caisson-tests-agents${runner === 0 ? "" : `-${runner}`}`;
  mkdirSync(base, { recursive: true, mode: 0o755 });
  const prefix = join(base, hash("sha256", readFileSync(join(described, "package-lock.json"))).slice(0, 16));
  if (!existsSync(prefix))
    execFileSync("flock", [join(base, "lock"), "sh", "-euc", install, "sh", prefix, described], {
      stdio: "pipe",
    });
  return join(prefix, "bin");
}
