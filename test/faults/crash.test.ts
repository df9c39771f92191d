// SIGKILL of the daemon at random moments under load: what was acknowledged is there, nothing else is.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { describe, it } from "node:test";
import { type Client, connect, type Run } from "@caisson/client";
import { randomFrom } from "../support/cutting-proxy.ts";
import { type Account, accounts, startDaemon, temporaryDirectory } from "../support/daemon.ts";
import { isFull, within } from "../support/dose.ts";
import { eventually, sleep } from "../support/eventually.ts";
import { remainsAfter } from "./remains.ts";

const seed = Number(process.env.CAISSON_TEST_SEED ?? Date.now() % 100_000);
const rounds = isFull() ? 25 : 3;

/** What the daemon has said yes to. */
interface Acknowledged {
  created: Set<string>;
  deleted: Set<string>;
  ran: { sandboxId: string; processId: string; code: number; text: string }[];
  files: Map<string, string>;
}

for (const account of accounts()) {
  describe(`a daemon killed at random moments, as ${account.name} (seed ${seed})`, {
    timeout: within(280_000),
  }, () => {
    it("has everything that it acknowledged, adopts what lives, and leaves nothing behind", async () => {
      await storm(account);
    });
  });
}

async function storm(account: Account): Promise<void> {
  const random = randomFrom(seed);
  const home = temporaryDirectory(account);
  await using daemon = await startDaemon({ account, home });
  const done: Acknowledged = { created: new Set(), deleted: new Set(), ran: [], files: new Map() };
  let counting: Run;
  let counted: string;
  {
    await using client = await connect({ socket: daemon.socket });
    const box = await client.create({ labels: { role: "counter" } });
    counted = box.id;
    // Lives through every crash; each line is numbered, so that a gap would show.
    counting = await box.exec(["perl", "-e", counter]);
    await counting.detach();
  }
  for (let round = 0; round < rounds; round++) {
    const client = await connect({ socket: daemon.socket, retry: false });
    const stop = new AbortController();
    const load = [
      creates(client, done, stop.signal),
      ...[1, 2, 3].map((n) => runs(client, done, `${round}-${n}`, stop.signal)),
    ];
    await sleep(100 + random(900));
    // A busy machine takes its time until there is something to lose.
    if (round === rounds - 1)
      await eventually(
        () => done.ran.length,
        (ran) => ran > rounds,
      );
    await daemon.crash();
    stop.abort();
    await Promise.all(load);
    await client.close();
    await daemon.restart();
    await verify(daemon.socket, done);
  }
  await verifyCounting(daemon.socket, counted, counting.id);
  assert.deepEqual(await remainsAfter(daemon), []);
  rmSync(home, { recursive: true, force: true });
}

const counter =
  "$| = 1; for (my $i = 0; !-e '/tmp/stop'; $i++) { print \"$i\\n\"; select(undef, undef, undef, 0.0005) if $i % 50 == 0 }";

/** Makes and deletes sandboxes until the daemon is gone. */
async function creates(client: Client, done: Acknowledged, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const box = await client.create({}, { signal });
      done.created.add(box.id);
      if (done.created.size % 2 === 0) continue;
      await box.files.write("/home/agent/kept", box.id, { signal });
      done.files.set(box.id, box.id);
      if (done.created.size % 3 === 0) {
        // Whether it is gone is not known until it is said.
        done.created.delete(box.id);
        done.files.delete(box.id);
        await box.delete({ signal });
        done.deleted.add(box.id);
      }
    } catch {
      return;
    }
  }
}

/** Runs commands with output until the daemon is gone. */
async function runs(client: Client, done: Acknowledged, mark: string, signal: AbortSignal): Promise<void> {
  try {
    const box = await client.create({}, { signal });
    done.created.add(box.id);
    for (let n = 0; !signal.aborted; n++) {
      const script = `echo ${mark}-${n}; head -c 20000 /dev/zero | tr '\\0' x; exit ${n % 7}`;
      const { processId, code, stdout } = await box.run(["sh", "-c", script], { signal });
      done.ran.push({ sandboxId: box.id, processId, code, text: stdout.text });
    }
  } catch {
    // The crash.
  }
}

async function verify(socket: string, done: Acknowledged): Promise<void> {
  await using client = await connect({ socket });
  const listed = await Array.fromAsync(client.sandboxes.list({ all: true }));
  const states = new Map(listed.map(({ id, state }) => [id, state]));
  for (const id of done.created) assert.equal(states.get(id), "ready", `${id} was created`);
  for (const id of done.deleted) assert.equal(states.get(id), "ended", `${id} was deleted`);
  for (const { sandboxId, processId, code, text } of done.ran) {
    const result = await client.sandboxes.at(sandboxId).process(processId).result();
    assert.deepEqual([result.code, result.lost, result.truncated], [code, "", false]);
    assert.equal(result.stdout.text, text);
  }
  for (const [id, text] of done.files) {
    assert.equal((await client.sandboxes.at(id).files.read("/home/agent/kept")).text, text);
  }
  const report = await client.events.verify();
  assert.equal(report.intact, true, report.reason);
  const events = await Array.fromAsync(client.events.subscribe({ follow: false }));
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, i) => i + 1),
  );
  for (const { id, state } of listed) if (state !== "ended" && !done.created.has(id)) await maybe(client, id);
  // Only so that the machine is not filled by rounds.
  for (const id of [...done.created]) await client.sandboxes.delete(id);
  done.created.clear();
  done.files.clear();
}

/** One that was not acknowledged may be there; then it works. */
async function maybe(client: Client, id: string): Promise<void> {
  assert.equal((await client.sandboxes.at(id).run(["true"])).code, 0);
}

async function verifyCounting(socket: string, boxId: string, processId: string): Promise<void> {
  await using client = await connect({ socket });
  const box = client.sandboxes.at(boxId);
  await box.files.write("/tmp/stop", "");
  let next = 0;
  let rest = "";
  let seq = 0;
  for await (const event of box.process(processId).output()) {
    assert.ok(event.stream === "stdout", "output is missing");
    assert.equal(event.seq - event.bytes.length, seq);
    seq = event.seq;
    const lines = (rest + Buffer.from(event.bytes).toString()).split("\n");
    rest = lines.pop()!;
    for (const line of lines) assert.equal(line, String(next++));
  }
  assert.equal(rest, "");
  assert.ok(next > 100, `only ${next} lines`);
  assert.equal((await box.process(processId).exit).code, 0);
}
