// MicroVMs against their peers, in turns.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import type { Client } from "@caisson/client";
import { BareSpawner } from "../support/bare-spawner.ts";
import type { BenchDaemon } from "../support/daemon.ts";
import { interleave, median, several } from "../support/measure.ts";
import { plainRunsc } from "../support/plain-runsc.ts";
import { progress, type Report } from "../support/report.ts";

const spec = { driver: "qemu" };
const touchedBytes = 256 * 1024 * 1024;
const crowd = 20;

async function ran(client: Client): Promise<void> {
  const { code } = await client.run(["true"], { spec });
  if (code !== 0) throw new Error(`true ended with ${code} in a microVM`);
}

/** @param cold a daemon without a pool; `warm` one with it; both with the same store of templates */
export async function benchMicrovms(
  cold: BenchDaemon,
  warm: BenchDaemon,
  report: Report,
  rounds: number,
): Promise<void> {
  progress("making the microVMs' template, and filling the pool …");
  for (const { client } of [cold, warm]) await ran(client);
  const box = await warm.client.create(spec);
  await using bare = new BareSpawner();
  const runsc = plainRunsc();
  const times = await interleave(
    {
      clone: () => ran(cold.client),
      pool: () => ran(warm.client),
      run: async () => void spawnSync(runsc.argv()[0]!, runsc.argv().slice(1)),
      exec: several(() => box.run(["true"]), 5, 200),
      spawn: bare.spawn,
    },
    rounds,
    // Time for the pool to be filled again, rehearsal included.
    { warmup: 1, pauseMs: 1500 },
  );
  runsc.remove();
  const [clone, pool, run] = [median(times.clone), median(times.pool), median(times.run)];
  const row = { unit: "ms", want: "<=" as const, note: `load ${loadavg()[0]!.toFixed(1)}` };
  const versus = "runsc run";
  report.add({
    ...row,
    what: "microVM: clone to first result",
    value: clone,
    versus,
    ratio: clone / run,
    target: 2,
  });
  report.add({ ...row, what: "microVM: from the pool", value: pool, versus, ratio: pool / run, target: 0.3 });
  const [exec, spawn] = [median(times.exec), median(times.spawn)];
  report.add({
    ...row,
    what: "microVM: warm exec",
    value: exec,
    versus: "bare spawn",
    ratio: exec / spawn,
    target: 15,
  });
  await box.delete();
  await benchFork(cold, report, clone);
  await benchMemory(cold, report);
  await benchCrowd(cold, report);
}

/** A running machine that has written to 256 MB of its memory. */
async function benchFork({ client, home }: BenchDaemon, report: Report, clone: number): Promise<void> {
  const box = await client.create(spec);
  const touch = `import time; held = bytearray(b"x" * ${touchedBytes}); print("touched", flush=True); time.sleep(3600)`;
  await using run = await box.exec(["python3", "-c", touch]);
  for (let seq = 0; seq === 0; await new Promise((resolve) => setTimeout(resolve, 100))) {
    seq = (await box.processes()).find(({ id }) => id === run.id)?.seq ?? 0;
  }
  const dir = mkdtempSync(join(home, "copy-"));
  writeFileSync(join(dir, "from"), Buffer.alloc(touchedBytes, "x"));
  const times = await interleave(
    {
      copy: async () => copyFileSync(join(dir, "from"), join(dir, "to")),
      fork: async () => {
        const began = performance.now();
        const [copy] = await client.snapshots.fork(box.id);
        await client.sandboxes.at(copy!.id).run(["true"]);
        const took = performance.now() - began;
        await client.sandboxes.delete(copy!.id);
        return took;
      },
    },
    5,
    { warmup: 1 },
  );
  rmSync(dir, { recursive: true });
  const [fork, copy] = [median(times.fork), median(times.copy)];
  report.add({
    what: "microVM: fork of a running one with 256 MB touched, to first result",
    value: fork,
    unit: "ms",
    versus: "a clone and copying 256 MB",
    ratio: fork / (clone + copy),
    want: "<=",
    target: 2,
  });
  await box.delete();
}

/** Two are alive: what only one machine has mapped of the template would count as its own otherwise. */
async function benchMemory({ client, home }: BenchDaemon, report: Report): Promise<void> {
  await using one = await client.create(spec);
  await using _other = await client.create(spec);
  const value = privateBytes(home, one.id) / 1e6;
  report.add({ what: "microVM: private memory of an idle clone", value, unit: "MB", want: "<=", target: 64 });
}

async function benchCrowd({ client }: BenchDaemon, report: Report): Promise<void> {
  const began = performance.now();
  const boxes = await Promise.all(
    Array.from({ length: crowd }, () => client.create(spec).catch(() => undefined)),
  );
  const answers = await Promise.all(
    boxes.map((box, index) =>
      box?.run(["echo", String(index)]).then(
        ({ stdout }) => stdout.text,
        () => "",
      ),
    ),
  );
  const failures = answers.filter((text, index) => text !== `${index}\n`).length;
  const note = `${crowd} alive at once, made and asked in ${Math.round(performance.now() - began)} ms`;
  report.add({
    what: "microVM: clones that did not answer",
    value: failures,
    unit: "",
    want: "<=",
    target: 0,
    note,
  });
  await Promise.all(boxes.map((box) => box?.delete()));
}

/** What QEMU shares with nobody. */
function privateBytes(home: string, id: string): number {
  const log = readFileSync(join(home, "sandboxes", id, "launch.log"), "utf8");
  let pid = Number(/launched ([0-9]+)/.exec(log)?.[1]);
  for (let child: number | undefined = pid; child !== undefined; child = childOf(pid)) pid = child;
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const lines = [...rollup.matchAll(/^Private_(?:Clean|Dirty): +([0-9]+) kB$/gm)];
  return lines.reduce((sum, [, kilobytes]) => sum + Number(kilobytes) * 1024, 0);
}

function childOf(pid: number): number | undefined {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const listed = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8")).join(" ");
  return listed.split(" ").filter(Boolean).map(Number)[0];
}
