// SIGKILL of the daemon at random moments under load: what was acknowledged is there, nothing else is.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import { rules } from "@caisson/contract";
import { randomFrom } from "../support/cutting-proxy.ts";
import { type Account, accounts, startDaemon, temporaryDirectory } from "../support/daemon.ts";
import { isFull, within } from "../support/dose.ts";
import { eventually, sleep } from "../support/eventually.ts";
import { remainsAfter } from "./remains.ts";

const seed = Number(process.env.CAISSON_TEST_SEED ?? Date.now() % 100_000);
const rounds = Number(process.env.CAISSON_ROUNDS ?? (isFull() ? 25 : 3));
/** Of what earlier rounds ran, so much is looked at again after each crash; all of it after the last. */
const lookedAtAgain = 50;

/** What the daemon has said yes to. */
interface Acknowledged {
  created: Set<string>;
  deleted: Set<string>;
  ran: { sandboxId: string; processId: string; code: number; text: string }[];
  files: Map<string, string>;
}

/** A command that counts for as long as the test lasts. */
interface Counting {
  sandboxId: string;
  processId: string;
  /** Bytes of its output that are kept on disk. */
  kept: number;
}

for (const account of accounts()) {
  describe(`a daemon killed at random moments, as ${account.name} (seed ${seed})`, {
    timeout: within(280_000) * Math.ceil(rounds / 25),
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
  const counting: Counting[] = [];
  {
    await using client = await connect({ socket: daemon.socket });
    // They live through every crash; one writes more than is kept of it.
    for (const kept of [rules.sizes.kept_output_bytes, 256 * 1024]) {
      const box = await client.create({ limits: { output: kept } });
      const run = await box.exec(["perl", "-e", counter]);
      await run.detach();
      counting.push({ sandboxId: box.id, processId: run.id, kept });
    }
  }
  for (let round = 0; round < rounds; round++) {
    const isLast = round === rounds - 1;
    const earlier = done.ran.length;
    const client = await connect({ socket: daemon.socket, retry: false });
    const stop = new AbortController();
    const load = [
      creates(client, done, stop.signal),
      ...[1, 2, 3].map((n) => runs(client, done, `${round}-${n}`, stop.signal)),
    ];
    await sleep(100 + random(900));
    // A busy machine takes its time until there is something to lose.
    if (isLast)
      await eventually(
        () => done.ran.length,
        (ran) => ran > rounds,
      );
    await daemon.crash();
    stop.abort();
    await Promise.all(load);
    await client.close();
    await daemon.restart();
    const again = isLast ? earlier : Math.min(earlier, lookedAtAgain);
    const old = Array.from({ length: again }, (_, i) => done.ran[isLast ? i : random(earlier)]!);
    await verify(daemon.socket, done, [...old, ...done.ran.slice(earlier)]);
  }
  for (const one of counting) await verifyCounting(daemon.socket, one);
  assert.deepEqual(await remainsAfter(daemon), []);
  rmSync(home, { recursive: true, force: true });
}

/** Every line has this length, so that a position in the output says what must be there. */
const lineBytes = 12;
const counter = `$| = 1;
  for (my $i = 0; !-e '/tmp/stop'; $i++) { printf "%011d\\n", $i; select(undef, undef, undef, 0.0005) if $i % 50 == 0 }`;

function expectedOutput(from: number, bytes: number): string {
  const first = Math.floor(from / lineBytes);
  const count = Math.ceil((from + bytes) / lineBytes) - first;
  const lines = Array.from(
    { length: count },
    (_, i) => `${String(first + i).padStart(lineBytes - 1, "0")}\n`,
  );
  return lines.join("").slice(from % lineBytes, (from % lineBytes) + bytes);
}

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

async function verify(socket: string, done: Acknowledged, ran: Acknowledged["ran"]): Promise<void> {
  await using client = await connect({ socket });
  const listed = await Array.fromAsync(client.sandboxes.list({ all: true }));
  const states = new Map(listed.map(({ id, state }) => [id, state]));
  for (const id of done.created) assert.equal(states.get(id), "ready", `${id} was created`);
  for (const id of done.deleted) assert.equal(states.get(id), "ended", `${id} was deleted`);
  for (const { sandboxId, processId, code, text } of ran) {
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

async function verifyCounting(socket: string, { sandboxId, processId, kept }: Counting): Promise<void> {
  await using client = await connect({ socket });
  const box = client.sandboxes.at(sandboxId);
  await box.files.write("/tmp/stop", "");
  let seq = 0;
  let missing = 0;
  for await (const event of box.process(processId).output()) {
    if (event.stream === "gap") {
      assert.equal(seq, 0, "only the oldest goes");
      missing = event.missing;
      assert.equal(event.seq, missing);
    } else {
      assert.equal(event.stream, "stdout");
      assert.equal(event.seq - event.bytes.length, seq);
      assert.equal(Buffer.from(event.bytes).toString(), expectedOutput(seq, event.bytes.length));
    }
    seq = event.seq;
  }
  assert.equal(seq % lineBytes, 0);
  assert.ok(seq > 100 * lineBytes, `only ${seq} bytes`);
  // What is kept is counted on disk, with a few bytes for each piece, and goes by eighths.
  if (missing > 0) assert.ok(seq - missing > kept / 2, `${missing} of ${seq} bytes are missing`);
  assert.ok(seq - missing <= kept + kept / 8, `${missing} of ${seq} bytes are missing`);
  assert.equal((await box.process(processId).exit).code, 0);
}
