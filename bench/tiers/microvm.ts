// MicroVMs against their peers, in turns: `node bench/tiers/microvm.ts [--json]`.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startDaemon } from "../support/daemon.ts";
import { interleave, median } from "../support/measure.ts";

const rounds = 7;
const spec = { driver: "qemu" };

export interface MicrovmNumbers {
  /** Median milliseconds. */
  cloneToFirstResult: number;
  fromPoolToFirstResult: number;
  warmExec: number;
  fork: number;
  bareSpawn: number;
  runscRun: number | undefined;
  /** Bytes that an idle copy has to itself. */
  idlePrivateBytes: number;
}

export async function measureMicrovms(): Promise<MicrovmNumbers> {
  const store = process.env.CAISSON_MICROVM_STORE;
  const shared = store ? { CAISSON_MICROVM_STORE: store } : {};
  const cold = await startDaemon({ ...shared, CAISSON_POOL_MAX: "0" });
  const warm = await startDaemon(shared);
  try {
    // Builds the image and the template, and fills the pool.
    for (const { client } of [cold, warm]) await client.run(["true"], { spec });
    const box = await warm.client.create(spec);
    const runsc = spawnSync("runsc", runscArgv).status === 0;
    const times = await interleave(
      {
        clone: () => cold.client.run(["true"], { spec }),
        pool: () => warm.client.run(["true"], { spec }),
        exec: () => box.run(["true"]),
        spawn: async () => void spawnSync("/bin/true"),
        runsc: async () => void (runsc && spawnSync("runsc", runscArgv)),
      },
      rounds,
      { warmup: 1, pauseMs: 1500 },
    );
    const idle = await cold.client.create(spec);
    const idlePrivateBytes = privateBytes(cold.home, idle.id);
    const began = performance.now();
    const [copy] = await warm.client.snapshots.fork(box.id);
    await warm.client.sandboxes.at(copy!.id).run(["true"]);
    const fork = performance.now() - began;
    return {
      cloneToFirstResult: median(times.clone),
      fromPoolToFirstResult: median(times.pool),
      warmExec: median(times.exec),
      fork,
      bareSpawn: median(times.spawn),
      runscRun: runsc ? median(times.runsc) : undefined,
      idlePrivateBytes,
    };
  } finally {
    await warm.stop();
    await cold.stop();
  }
}

const runscArgv = ["--network=none", "--ignore-cgroups", "--platform=ptrace", "do", "/bin/true"];

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

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const numbers = await measureMicrovms();
  if (process.argv.includes("--json")) console.log(JSON.stringify(numbers));
  else console.table(numbers);
}
