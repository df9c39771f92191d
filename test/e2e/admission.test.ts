// The host's bound on sandboxes: beyond it they wait, in order, in a state that everybody can see.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import { startDaemon, type TestDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { Launcher } from "../support/launcher.ts";

describe("admission", { timeout: 120_000 }, () => {
  let daemon: TestDaemon;
  let client: Client;
  before(async () => {
    daemon = await startDaemon({ env: { CAISSON_ADMISSION_SANDBOXES: "2", CAISSON_ADMISSION_QUEUE: "2" } });
    client = await connect({ socket: daemon.socket });
  });
  after(async () => {
    await client.close();
    await daemon[Symbol.asyncDispose]();
  });
  const states = async () => {
    const found: Record<string, string> = {};
    for await (const { labels, state } of client.sandboxes.list()) if (labels.n) found[labels.n] = state;
    return found;
  };

  it("queues beyond the bound, refuses beyond the queue, and goes on in order", async () => {
    const make = (n: string) => client.create({ labels: { n } });
    const [one, two] = [await make("1"), await make("2")];
    const third = make("3");
    await eventually(states, (seen) => seen["3"] === "queued");
    const fourth = make("4");
    await eventually(states, (seen) => seen["4"] === "queued");
    assert.match((await new Launcher(daemon).run(["ls"])).out, /queued/);
    await assert.rejects(make("5"), { code: "QUEUE_FULL" });
    const { code, err } = await new Launcher(daemon).run(["run", "--no-workspace", "--", "true"]);
    assert.equal(code, 125);
    assert.match(err, /queue|wait/i);

    await one.delete();
    assert.equal((await (await third).run(["echo", "3"])).stdout.text, "3\n");
    assert.equal((await states())["4"], "queued", "the one behind it still waits");
    await two.delete();
    const last = await fourth;
    assert.equal((await last.run(["true"])).code, 0);
    await last.delete();
    await (await third).delete();
  });

  it("lets a caller that does not wait look later, and takes back one that gave up", async () => {
    const [one, two] = [await client.create({}), await client.create({})];
    const queued = await client.sandboxes.create({ labels: { n: "later" } }, { wait: false });
    assert.equal(queued.info.state, "queued");
    const abort = new AbortController();
    const impatient = client.create({ labels: { n: "gone" } }, { signal: abort.signal });
    await eventually(states, (seen) => seen.gone === "queued");
    abort.abort();
    await assert.rejects(impatient);
    await one.delete();
    await eventually(
      () => queued.refresh(),
      ({ state }) => state === "ready",
    );
    assert.equal((await queued.run(["echo", "now"])).stdout.text, "now\n");
    for (const box of [two, queued]) await box.delete();
    await eventually(states, (seen) => !Object.values(seen).includes("queued"));
  });
});
