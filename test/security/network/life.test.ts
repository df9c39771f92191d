// What holds while sandboxes live and rules change. `test/drivers/network.test.ts` has the daemon die, in every tier.
import assert from "node:assert/strict";
import { it } from "node:test";
import { eventually } from "../../support/eventually.ts";
import { outside } from "../../support/network/world.ts";
import { eachAccount, usual } from "./lab.ts";

eachAccount("the door through time", (lab) => {
  const reach = () => `curl -sS -m 10 http://allowed.test:${lab.world.httpPort}/`;

  it("new rules hold at once, also for a connection that is open", async () => {
    const box = await lab.make({ allow: usual });
    const script = `s = socket.create_connection(("allowed.test", ${lab.world.tlsPort}))
print("open", flush=True)
s.settimeout(30)
try: print("ended" if s.recv(1) == b"" else "data")
except TimeoutError: print("still open")
except OSError: print("cut")`;
    const run = await box.exec(["/usr/bin/python3", "-c", `import socket\n${script}`]);
    await eventually(
      async () => (await box.network.get()).connections,
      (count) => count === 1,
    );
    const { cut } = await box.network.update({ remove: ["allowed.test"] });
    assert.equal(cut, 1);
    const { stdout } = await run.result();
    assert.match(stdout.text, /^open\n(cut|ended)\n$/);
    assert.doesNotMatch(await lab.sh(reach(), box), /^reached/);
    await box.network.update({ allow: ["allowed.test"] });
    assert.match(await lab.sh(reach(), box), /^reached/);
    await box.network.update({ deny: ["*.test"] });
    assert.doesNotMatch(await lab.sh(reach(), box), /^reached/);
    const changes = [];
    for await (const event of lab.client.events.subscribe({
      from: 0,
      follow: false,
      sandboxId: box.id,
      types: ["network.changed"],
    }))
      changes.push(event.actor);
    assert.equal(changes.length, 3);
    await box.delete();
  });

  it("limits bound a sandbox's connections, and the refusals say so", async () => {
    const box = await lab.make({ allow: usual, limits: { connections: 5, bytes: 100_000 } });
    const printed = await lab.python(
      `
held = []
for i in range(12):
    try: held.append(socket.create_connection(("allowed.test", ${lab.world.httpPort}), timeout=5))
    except OSError: pass
def lives(s):
    s.settimeout(0.1)
    try: return s.recv(1) != b""
    except TimeoutError: return True
    except OSError: return False
# What is refused is told a moment later.
for _ in range(200):
    alive = sum(map(lives, held))
    if alive <= 5: break
print("alive", alive)
`,
      box,
    );
    assert.equal(printed.trim(), "alive 5");
    assert.ok((await lab.refusals("allowed.test", box)).includes("connections"));
    await box.delete();
  });

  it("every decision is an event with rule, name, address and bytes, and the chain of events holds", async () => {
    const box = await lab.make({ allow: usual });
    await lab.sh(reach(), box);
    await lab.sh(`curl -sS -m 10 http://denied.test:${lab.world.httpPort}/`, box);
    const seen = await eventually(
      async () => {
        const events = [];
        for await (const { type, data } of lab.client.events.subscribe({
          from: 0,
          follow: false,
          sandboxId: box.id,
          types: ["network."],
        }))
          events.push({ type, data });
        return events;
      },
      (events) =>
        ["network.closed", "network.refused"].every((want) => events.some(({ type }) => type === want)),
    );
    const allowed = seen.find(({ type }) => type === "network.allowed")!.data;
    assert.deepEqual(
      [allowed.name, allowed.address, allowed.rule],
      ["allowed.test", outside, "allowed.test"],
    );
    const refused = seen.find(({ type }) => type === "network.refused")!.data;
    assert.deepEqual(
      [refused.name, refused.rule, refused.add],
      ["denied.test", "no rule", `denied.test:${lab.world.httpPort}`],
    );
    const closed = seen.find(({ type }) => type === "network.closed")!.data;
    assert.ok((closed.received as number) > 0);
    const decisions = await Array.fromAsync(box.network.decisions());
    assert.deepEqual(
      decisions.map(({ allowed, name }) => [name, allowed]),
      [
        ["denied.test", false],
        ["allowed.test", true],
      ],
    );
    assert.match(
      decisions[0]!.reason,
      /to allow it: --allow denied\.test:\d+, or at once: caisson net set sb_[a-z0-9]+ --allow denied\.test:\d+$/,
    );
    assert.ok((await lab.client.events.verify()).intact);
    await box.delete();
  });
});
