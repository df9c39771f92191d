// What a sealed command costs, beside what an unsealed one does. Run from a project of 1,000 files.

import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BareSpawner } from "./support/bare-spawner.ts";
import { installed, launcher, residentMb, root, startDaemon } from "./support/daemon.ts";
import { interleave, mean, median } from "./support/measure.ts";
import { codexSandbox, docker, plainBubblewrap, srt } from "./support/peers.ts";
import { progress, Report } from "./support/report.ts";
import { run } from "./support/spawned.ts";

const quick = process.argv.includes("--quick");
const rounds = quick ? 20 : 100;
const report = new Report();
const project = makeProject();
process.chdir(project);
execFileSync("sh", [join(root, "scripts/bootstrap.sh")], { stdio: ["ignore", "ignore", "inherit"] });
const daemon = await startDaemon();
const { client } = daemon;
const workspace = { dir: project, mode: "overlay" } as const;
const bwrap = plainBubblewrap(["true"]);
const caisson =
  (...args: string[]) =>
  () =>
    run([launcher, ...args], { env: daemon.env });
/** What is on people's PATH. */
const installedCaisson =
  (...args: string[]) =>
  () =>
    run([installed, ...args], { env: daemon.env });

await commandLine();
await throughSdk();
await parallel();
await output();
await memory();
await many();
await daemon.stop();
rmSync(project, { recursive: true });
report.print();

function makeProject(): string {
  const dir = mkdtempSync(join(tmpdir(), "caisson-project-"));
  for (let i = 0; i < 1000; i++) {
    const sub = join(dir, `d${i % 20}`);
    mkdirSync(sub, { recursive: true });
    writeFileSync(join(sub, `f${i}.txt`), `file ${i}\n`.repeat(20));
  }
  return dir;
}

async function commandLine(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 500));
  const box = await client.create({ workspace });
  const times = await interleave(
    {
      run: caisson("run", "--", "true"),
      bwrap: () => run(bwrap),
      exec: installedCaisson("exec", box.id, "--", "true"),
    },
    rounds,
    { pauseMs: 50 },
  );
  const versus = "plain bwrap";
  const base = median(times.bwrap);
  const ours = median(times.run);
  report.add({
    what: "caisson run -- true, pool warm, one every 50 ms, p50",
    value: ours,
    unit: "ms",
    versus,
    ratio: ours / base,
    want: "<=",
    target: 1.0,
  });
  for (const [name, peer, target] of [
    ["codex sandbox", codexSandbox(["true"]), 0.1],
    ["srt", srt(["true"]), 0.03],
  ] as const) {
    if ("missing" in peer) {
      progress(`not compared with ${name}: ${peer.missing}`);
      continue;
    }
    const env = { ...(process.env as Record<string, string>), ...peer.env };
    const beside = await interleave(
      { peer: () => run(peer.argv, { env }), run: caisson("run", "--", "true") },
      quick ? 5 : 20,
      { pauseMs: 50, warmup: 1 },
    );
    report.add({
      what: `caisson run -- true beside ${name}`,
      value: median(beside.run),
      unit: "ms",
      versus: name,
      ratio: median(beside.run) / median(beside.peer),
      want: "<=",
      target,
    });
  }
  const engine = docker();
  if ("missing" in engine) progress(`not compared with docker: ${engine.missing}`);
  else {
    const beside = await interleave(
      {
        peer: () => run(["docker", "run", "--rm", "--network=none", engine.image, "true"]),
        run: caisson("run", "--", "true"),
      },
      quick ? 3 : 10,
      { warmup: 1 },
    );
    report.add({
      what: "caisson run -- true beside docker run",
      value: median(beside.run),
      unit: "ms",
      versus: "docker run --rm",
      ratio: median(beside.run) / median(beside.peer),
    });
  }
  const backToBack: number[] = [];
  const plain: number[] = [];
  for (let i = 0; i < (quick ? 4 : 20); i++) {
    for (let j = 0; j < 10; j++) backToBack.push(await timed(caisson("run", "--", "true")));
    for (let j = 0; j < 10; j++) plain.push(await timed(() => run(bwrap)));
  }
  report.add({
    what: "caisson run -- true, back to back, mean",
    value: mean(backToBack),
    unit: "ms",
    versus,
    ratio: mean(backToBack) / mean(plain),
    want: "<=",
    target: 3,
  });
  report.add({
    what: "caisson exec BOX -- true, p50",
    value: median(times.exec),
    unit: "ms",
    versus,
    ratio: median(times.exec) / base,
    want: "<=",
    target: 0.7,
  });
  await box.delete();
}

async function timed(subject: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await subject();
  return performance.now() - began;
}

/** Times bare spawns in a fresh Node process, where nothing else has grown its memory. */
async function bareSpawns(count: number, atOnce: number): Promise<{ perSecond: number }> {
  const script = join(import.meta.dirname, "support/bare-spawns.ts");
  const printed = execFileSync(process.execPath, [script, String(count), String(atOnce)], {
    encoding: "utf8",
  });
  return JSON.parse(printed);
}

async function throughSdk(): Promise<void> {
  const box = await client.create({ workspace });
  await using bare = new BareSpawner();
  const warm = await interleave(
    { ours: async () => void (await box.run(["/bin/true"])), bare: bare.spawn },
    quick ? 100 : 500,
    { warmup: 20 },
  );
  report.add({
    what: "warm exec of /bin/true through the SDK, p50",
    value: median(warm.ours),
    unit: "ms",
    versus: "child_process.spawn",
    ratio: median(warm.ours) / median(warm.bare),
    want: "<=",
    target: 1.0,
  });

  const content = Buffer.alloc(1 << 20, 7);
  const times = await interleave(
    {
      exec: async () => void (await box.run(["/bin/true"])),
      both: async () => {
        await box.files.write("/tmp/file", content);
        await box.run(["/bin/true"]);
      },
    },
    rounds,
  );
  const [alone, both] = [median(times.exec), median(times.both)];
  report.add({
    what: "write a 1 MiB file, then exec: less exec alone × 1.5",
    value: both - 1.5 * alone,
    unit: "ms",
    want: "<=",
    target: 3,
    note: `${both.toFixed(2)} ms, exec alone ${alone.toFixed(2)} ms`,
  });
  await box.delete();

  const cold = await startDaemon({ CAISSON_POOL_MAX: "0" });
  const life = await interleave(
    {
      ours: async () => {
        const fresh = await cold.client.create({ workspace });
        await fresh.run(["/bin/true"]);
        await fresh.delete();
      },
      bwrap: () => run(bwrap),
    },
    quick ? 15 : 50,
  );
  report.add({
    what: "create + first exec + delete through the SDK without the pool, p50",
    value: median(life.ours),
    unit: "ms",
    versus: "plain bwrap",
    ratio: median(life.ours) / median(life.bwrap),
    want: "<=",
    target: 3,
  });
  await cold.stop();
}

async function parallel(): Promise<void> {
  const box = await client.create({ workspace });
  const count = quick ? 200 : 800;
  const ratios: number[] = [];
  let rate = 0;
  for (let turn = 0; turn < 3; turn++) {
    const bare = await bareSpawns(count, 8);
    let left = count;
    const began = performance.now();
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        while (left-- > 0) await box.run(["/bin/true"]);
      }),
    );
    rate = count / ((performance.now() - began) / 1000);
    ratios.push(rate / bare.perSecond);
  }
  report.add({
    what: "execs per second, 8 at once",
    value: rate,
    unit: "per s",
    versus: "bare spawns, 8 at once",
    ratio: median(ratios),
    want: ">=",
    target: 0.6,
  });
  await box.delete();
}

async function output(): Promise<void> {
  const bytes = quick ? 1 << 28 : 1 << 30;
  const produce = ["sh", "-c", `head -c ${bytes} /dev/zero | tr '\\0' x`];
  const box = await client.create();
  const hash = createHash("sha256");
  const expected = createHash("sha256");
  const piece = Buffer.alloc(1 << 20, "x");
  for (let i = 0; i < bytes / piece.length; i++) expected.update(piece);
  const before = residentMb(daemon.pid);
  const sealed = await timed(async () => {
    const started = await box.exec(produce);
    for await (const event of started.output()) if (event.stream !== "gap") hash.update(event.bytes);
  });
  const grown = residentMb(daemon.pid) - before;
  const plainHash = createHash("sha256");
  const plain = await timed(
    () =>
      new Promise((resolve) => {
        const child = spawn(produce[0]!, produce.slice(1), { stdio: ["ignore", "pipe", "ignore"] });
        child.stdout.on("data", (data) => plainHash.update(data));
        child.stdout.on("end", resolve);
      }),
  );
  const right = hash.digest("hex") === expected.digest("hex");
  report.add({
    what: `stdout of ${bytes >> 20} MiB to the SDK, checked by hash`,
    value: bytes / 2 ** 20 / (sealed / 1000),
    unit: "MiB/s",
    versus: "a plain pipe",
    ratio: plain / sealed,
    want: ">=",
    target: 0.3,
    note: right ? "contents right" : "CONTENTS WRONG",
  });
  report.add({ what: "growth of the daemon meanwhile", value: grown, unit: "MB", want: "<=", target: 64 });
  await box.delete();
}

/** Proportional memory of a sandbox: every process below its outer one. */
function proportionalMb(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean)
    .map(Number);
  const own = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))![1]) / 1024;
  return own + children.reduce((sum, child) => sum + proportionalMb(child), 0);
}

function outerProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1];
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("bwrap\0") ||
          readFileSync(`/proc/${pid}/comm`, "utf8") === "bwrap\n"
          ? parent !== undefined
          : false;
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function memory(): Promise<void> {
  const boxes = [];
  for (let i = 0; i < 10; i++) {
    const box = await client.create({ workspace });
    await box.run(["/bin/true"]);
    boxes.push(box);
  }
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const sizes = outerProcesses().map((pid) => {
    try {
      return proportionalMb(pid);
    } catch {
      return 0;
    }
  });
  report.add({
    what: "idle sandbox, proportional memory of all its processes",
    value: median(sizes),
    unit: "MB",
    want: "<=",
    target: 4,
  });
  await Promise.all(boxes.map((box) => box.delete()));
}

async function many(): Promise<void> {
  const count = quick ? 60 : 300;
  const boxes: Awaited<ReturnType<typeof client.create>>[] = [];
  const times: number[] = [];
  for (let i = 0; i < count; i++)
    times.push(await timed(async () => void boxes.push(await client.create({ workspace }))));
  let failures = 0;
  for (const box of boxes)
    if ((await box.run(["/bin/echo", box.id])).stdout.text.trim() !== box.id) failures++;
  report.add({
    what: `${count} sandboxes alive, each answers an exec: failures`,
    value: failures,
    unit: "failures",
    want: "<=",
    target: 0,
  });
  const [first, last] = [
    median(times.slice(0, Math.ceil(count / 10))),
    median(times.slice(-Math.ceil(count / 10))),
  ];
  report.add({
    what: `cost of one more sandbox, the last tenth of ${count}`,
    value: last,
    unit: "ms",
    versus: "the first tenth",
    ratio: last / first,
    want: "<=",
    target: 1.5,
  });
  for (const box of boxes) await box.delete();
}
