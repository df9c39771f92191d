// What each tier takes, beside what the runtime below it takes by itself: `npm run bench:tiers -- --json`.
import { spawnSync } from "node:child_process";
import type { Client } from "@caisson/client";
import { canStartDockerd, startDockerd, type TestEngine } from "../test/support/dockerd.ts";
import { type BenchDaemon, startDaemon } from "./support/daemon.ts";
import { interleave, median, several } from "./support/measure.ts";
import { plainRunsc } from "./support/plain-runsc.ts";
import { progress, Report } from "./support/report.ts";
import { benchMicrovms } from "./tiers/microvm.ts";

/** The image of the host takes gigabytes and a minute: kept between runs, where the tests keep theirs. */
const store = process.env.CAISSON_MICROVM_STORE ?? `/var/tmp/caisson-tests-microvm/${process.getuid!()}`;
/** To measure some tiers alone: `CAISSON_BENCH_TIERS=microvm`. */
const only = process.env.CAISSON_BENCH_TIERS?.split(",");
const wanted = (tier: string) => only === undefined || only.includes(tier);
const rounds = Number(process.env.CAISSON_BENCH_ROUNDS ?? 15);
const report = new Report();

/** One command in a sandbox of its own, from asking to its result. */
async function first(client: Client, driver: string): Promise<void> {
  const { code } = await client.run(["true"], { spec: { driver } });
  if (code !== 0) throw new Error(`${driver}: true ended with ${code}`);
}

function succeed(argv: string[], env: Record<string, string> = {}): void {
  const { status, stderr } = spawnSync(argv[0]!, argv.slice(1), {
    env: { ...process.env, ...env },
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${argv.join(" ")}: ${stderr}`);
}

async function writeAndExec(client: Client, driver: string): Promise<() => Promise<void>> {
  const box = await client.create({ driver });
  return async () => {
    await box.files.write("/tmp/file", "content\n");
    const { stdout } = await box.run(["cat", "/tmp/file"]);
    if (stdout.text !== "content\n") throw new Error(`${driver}: ${stdout.text}`);
  };
}

/** Resolves with what runs `docker exec` once. */
async function benchDocker(cold: BenchDaemon, engine: TestEngine): Promise<() => Promise<void>> {
  const image = "caisson-bench";
  const archive = `tar -C / -c bin lib lib64 usr/bin/true usr/bin/sleep usr/lib/x86_64-linux-gnu/libc.so.6 usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 usr/lib64 | docker import - ${image}`;
  succeed(["sh", "-c", archive], engine.env);
  succeed(
    ["docker", "run", "-d", "--name", "bench", "--network", "none", image, "/bin/sleep", "1000"],
    engine.env,
  );
  const box = await cold.client.create({ driver: "docker" });
  const plain = async (...args: string[]) => succeed(["docker", ...args], engine.env);
  const times = await interleave(
    {
      create: () => first(cold.client, "docker"),
      run: () => plain("run", "--rm", "--network", "none", image, "/bin/true"),
      warm: () => box.run(["true"]),
      exec: () => plain("exec", "bench", "/bin/true"),
    },
    rounds,
  );
  const [create, run, warm, exec] = [
    median(times.create),
    median(times.run),
    median(times.warm),
    median(times.exec),
  ];
  const docker = { unit: "ms", want: "<=" as const };
  report.add({
    ...docker,
    what: "Docker: create to first result, no pool",
    value: create,
    versus: "docker run",
    ratio: create / run,
    target: 1.1,
  });
  report.add({
    ...docker,
    what: "Docker: warm exec",
    value: warm,
    versus: "docker exec",
    ratio: warm / exec,
    target: 0.1,
  });
  return () => plain("exec", "bench", "/bin/true");
}

async function benchGvisor(warm: BenchDaemon): Promise<void> {
  const runsc = plainRunsc();
  const box = await warm.client.create({ driver: "runsc" });
  const times = await interleave(
    {
      pooled: () => first(warm.client, "runsc"),
      run: async () => succeed(runsc.argv()),
      exec: several(() => box.run(["true"]), 5, 200),
    },
    rounds,
    // Time for the pool to be filled again.
    { pauseMs: 1500 },
  );
  runsc.remove();
  const [pooled, run, exec] = [median(times.pooled), median(times.run), median(times.exec)];
  const gvisor = { unit: "ms", versus: "runsc run", want: "<=" as const };
  report.add({
    ...gvisor,
    what: "gVisor: from the pool to first result",
    value: pooled,
    ratio: pooled / run,
    target: 0.2,
  });
  report.add({ ...gvisor, what: "gVisor: warm exec", value: exec, ratio: exec / run, target: 0.1 });
}

if (!canStartDockerd()) {
  progress("an engine can only be started by root, with docker.io installed");
  process.exit(1);
}
await using engine = await startDockerd();
const env = { ...engine.env, CAISSON_MICROVM_STORE: store };
const cold = await startDaemon({ ...env, CAISSON_POOL_MIN: "0", CAISSON_POOL_MAX: "0" });
const warm = await startDaemon(env);
try {
  const exec = await benchDocker(cold, engine);
  if (wanted("gvisor")) await benchGvisor(warm);
  if (wanted("microvm")) await benchMicrovms(cold, warm, report, Math.min(rounds, 9));
  for (const driver of ["bubblewrap", "docker", "runsc", "qemu"]) {
    const times = await interleave({ both: await writeAndExec(cold.client, driver), exec }, rounds);
    const value = median(times.both);
    report.add({
      what: `${driver}: write a file and exec`,
      value,
      unit: "ms",
      versus: "docker exec",
      ratio: value / median(times.exec),
      want: "<=",
      target: 0.5,
    });
  }
} finally {
  await cold.stop();
  await warm.stop();
}
report.print();
