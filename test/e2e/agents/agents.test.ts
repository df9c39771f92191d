// The real Claude Code, Codex and Gemini CLI in sandboxes, each with a scripted model that makes it run commands.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Account, accounts } from "../../support/daemon.ts";
import { isFull } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { ending, type Launcher } from "../../support/launcher.ts";
import { type Agent, agents } from "./support/agents.ts";
import { openWorld, realKey, type World } from "./support/world.ts";

const withheld = [
  ".claude/settings.json",
  ".codex/config.toml",
  ".gemini/settings.json",
  ".mcp.json",
  ".git/hooks/post-commit",
];

// Gemini CLI runs no `$(…)`. What only a shell can know shows that one ran.
const commands = [
  `expr 6000 + 7 > agent.txt; mkdir -p .claude .codex .gemini; for file in ${withheld.join(" ")}; do echo '{}' > $file; done`,
  "printenv; cat agent.txt; cat ~/.caisson/* /proc/*/environ 2>/dev/null | tr '\\0' '\\n'",
  "git add agent.txt; git commit -qm 'by an agent'; git log --format=%an",
];
const last = "All done by the script.";

// Starting Gemini CLI alone takes seconds of processor time: once is enough, unless there is time for everything.
for (const [index, account] of accounts().entries())
  suite(account, index === 0 || isFull() ? agents : agents.filter(({ name }) => name !== "gemini"));

function suite(account: Account, chosen: readonly Agent[]): void {
  describe(`agents' command lines, as ${account.name}`, { timeout: 300_000, concurrency: true }, () => {
    let world: World;
    before(async () => {
      world = await openWorld(account, commands, last);
    });
    after(() => world?.[Symbol.asyncDispose]());

    for (const agent of chosen)
      it(`${agent.name} works on a project without its key`, async () => {
        const caisson = world.project();
        await work(world, agent, caisson);
        checkRequests(world, agent);
        await checkProject(caisson);
        await checkKept(agent, caisson);
      });
  });
}

/** One task from its first request to its last word. */
async function work(world: World, agent: Agent, caisson: Launcher): Promise<void> {
  if (agent.settings) {
    const [file, text] = agent.settings;
    const script = `cat > ~/.${agent.name}/${file}`;
    const { code, err } = await caisson.run(["run", "--profile", agent.name, "--", "sh", "-c", script], {
      stdin: text,
    });
    assert.equal(code, 0, err);
  }
  const child = caisson.start(["run", "--profile", agent.name, "--", ...agent.task(world.urlOf(agent))]);
  let printed = "";
  child.stdout!.on("data", (data) => {
    printed += data;
  });
  const ended = ending(child);
  // The answer goes on only when its first word has come through.
  const firstWord = eventually(
    () => printed,
    (text) => !agent.printsWords || text.includes('"All '),
    { within: 120_000, what: "the first word" },
  );
  await Promise.race([firstWord, ended]);
  world.model(agent).goOn();
  const { code, out, err } = await ended;
  assert.equal(code, 0, `${out}\n${err}`);
  assert.ok(out.includes(last) || /"done ".*"script\."/s.test(out), `${out}\n${err}`);
  assert.ok(!out.includes(realKey(agent)) && !err.includes(realKey(agent)));
}

/** The provider got the key, in the header where it belongs; what the agent saw of it was a placeholder. */
function checkRequests(world: World, agent: Agent): void {
  const { heard } = world.model(agent);
  const [header, before] = agent.header;
  assert.ok(heard.length >= commands.length + 1);
  for (const { path, headers, text } of heard) {
    assert.equal(headers[header], `${before}${realKey(agent)}`, path);
    assert.ok(!text.includes(realKey(agent)), `the agent knows its key: ${path}`);
  }
  const said = heard.at(-1)!.text;
  assert.match(said, /6007/);
  assert.match(said, /An agent/);
  assert.match(said, new RegExp(`${agent.key}=`));
}

/** What was written waits, and what would act outside stays there. */
async function checkProject(caisson: Launcher): Promise<void> {
  assert.ok(!existsSync(join(caisson.cwd, "agent.txt")));
  const { out, err } = await caisson.run(["diff", "--names"]);
  assert.match(out, /agent\.txt/, err);
  const applied = await caisson.run(["apply"]);
  assert.equal(applied.code, 0, applied.err);
  assert.ok(existsSync(join(caisson.cwd, "agent.txt")));
  for (const file of withheld) assert.ok(!existsSync(join(caisson.cwd, file)), `${file} was let through`);
  const log = ["-c", `safe.directory=${caisson.cwd}`, "-C", caisson.cwd, "log", "--format=%an %s"];
  assert.equal(execFileSync("git", log, { encoding: "utf8" }), "An agent by an agent\nA by a person\n");
}

/** Its conversation is there for the next sandbox of this project, and for no other's. */
async function checkKept(agent: Agent, caisson: Launcher): Promise<void> {
  const words = ["run", "--profile", agent.name];
  const find = ["--", "sh", "-c", `grep -rl 'do it' ~/.${agent.name} | head -n 1`];
  assert.notEqual((await caisson.run([...words, ...find])).out, "");
  assert.equal((await caisson.run([...words, "--no-workspace", ...find])).out, "");
}
