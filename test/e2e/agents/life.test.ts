// An agent in a person's hands: on a terminal, interrupted, and across the death of the daemon.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { accounts, processesWith } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";
import { ending } from "../../support/launcher.ts";
import { Seat } from "../../support/seat.ts";
import { agents } from "./support/agents.ts";
import { openWorld, type World } from "./support/world.ts";

const [claude, codex] = agents;
const marker = `sleep 86${process.pid}`;
const last = "All done by the script.";

describe("an agent's life", { timeout: 300_000 }, () => {
  let world: World;
  before(async () => {
    // Until the file is there; then it ends by itself.
    const waiting = `echo up > up.txt; ${marker} & until test -e go.txt; do sleep 0.1; done; kill %1; expr 6000 + 7`;
    world = await openWorld(accounts()[0]!, [waiting], last);
    for (const agent of agents) world.model(agent).goOn();
  });
  after(() => world?.[Symbol.asyncDispose]());

  // Claude Code ends by itself: its first start asks its provider, who is not allowed here.
  for (const [agent, screen, keys] of [
    [claude!, /Welcome/, ""],
    [codex!, /ChatGPT/, "\u0003"],
  ] as const)
    it(`${agent.name} draws its screen on a terminal and leaves it as it was`, async () => {
      const words = ["run", "-it", "--profile", agent.name, "--", agent.name];
      using seat = new Seat(world.daemon, words, world.project().cwd);
      await seat.shows(screen);
      // It drops what is typed while it still asks the terminal what that can do.
      const pressing = keys === "" ? undefined : setInterval(() => seat.type(keys), 500);
      await seat.code.finally(() => clearInterval(pressing));
      const shown = seat.text();
      assert.ok(shown.lastIndexOf("\u001b[?25h") > shown.lastIndexOf("\u001b[?25l"), "the cursor is hidden");
      assert.ok(shown.lastIndexOf("\u001b[?2004l") > shown.lastIndexOf("\u001b[?2004h"), "pasting is marked");
    });

  it("ends with the launcher, children and all", async () => {
    const child = world.project().start(["run", "--profile", "claude", "--", ...claude!.task("")]);
    const ended = ending(child);
    await eventually(
      () => processesWith(marker).length,
      (count) => count > 0,
      { within: 120_000 },
    );
    child.kill("SIGTERM");
    const { code, signal } = await ended;
    assert.ok(code !== 0 || signal !== null);
    await eventually(
      () => processesWith(marker).length,
      (count) => count === 0,
    );
  });

  it("goes on without the daemon, and attaching finds all of its output", async () => {
    const caisson = world.project();
    const words = ["--session", "work", "--profile", "claude", "--detach", "--", ...claude!.task("")];
    assert.equal((await caisson.run(["run", ...words])).code, 0);
    await eventually(
      () => processesWith(marker).length,
      (count) => count > 0,
      { within: 120_000 },
    );
    await world.daemon.crash();
    assert.ok(processesWith(marker).length > 0);
    await world.daemon.restart();
    assert.equal((await caisson.run(["exec", "work", "--", "touch", "go.txt"])).code, 0);
    const { code, out, err } = await caisson.run(["attach", "work", "p1"]);
    assert.equal(code, 0, err);
    assert.match(out, /"type":"init"|"subtype":"init"/, "from its first line");
    assert.match(out, /6007/);
    assert.ok(out.includes(last), out);
  });
});
