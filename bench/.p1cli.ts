import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launcher, startDaemon } from "./support/daemon.ts";
import { interleave, mean, median } from "./support/measure.ts";
import { plainBubblewrap } from "./support/peers.ts";
import { run } from "./support/spawned.ts";

const rounds = Number(process.argv[2] ?? 30);
const dir = mkdtempSync(join(tmpdir(), "caisson-project-"));
for (let i = 0; i < 1000; i++) {
  const sub = join(dir, `d${i % 20}`);
  mkdirSync(sub, { recursive: true });
  writeFileSync(join(sub, `f${i}.txt`), `file ${i}\n`.repeat(20));
}
process.chdir(dir);
execFileSync(launcher, ["help"], { stdio: "ignore" });
const daemon = await startDaemon();
console.log("ready", daemon.readyMs);
const box = await daemon.client.create({ workspace: { dir, mode: "overlay" } });
await new Promise((r) => setTimeout(r, 500));
const bwrap = plainBubblewrap(["true"]);
const caisson =
  (...args: string[]) =>
  () =>
    run([launcher, ...args], { env: daemon.env });
const times = await interleave(
  {
    run: caisson("run", "--", "true"),
    bwrap: () => run(bwrap),
    exec: caisson("exec", box.id, "--", "true"),
    ps: caisson("ps", "--json"),
    true: () => run(["/bin/true"]),
  },
  rounds,
  { pauseMs: 50 },
);
const q = (v: number[], p: number) => [...v].sort((a, b) => a - b)[Math.floor(v.length * p)]!.toFixed(2);
for (const [k, v] of Object.entries(times))
  console.log(
    k,
    "p10",
    q(v, 0.1),
    "p50",
    median(v).toFixed(2),
    "p90",
    q(v, 0.9),
    "ratio",
    (median(v) / median(times.bwrap)).toFixed(2),
  );
const sdk = await interleave(
  {
    sdk: async () => void (await box.run(["/bin/true"])),
    bare: () =>
      new Promise<void>((r) => {
        import("node:child_process").then(({ spawn }) =>
          spawn("/bin/true", [], { stdio: ["ignore", "pipe", "pipe"] }).once("close", () => r()),
        );
      }),
  },
  rounds * 3,
);
for (const [k, v] of Object.entries(sdk))
  console.log(k, "p10", q(v, 0.1), "p50", median(v).toFixed(2), "p90", q(v, 0.9));
if (process.argv[3]) {
  const b: number[] = [],
    p: number[] = [];
  for (let i = 0; i < 4; i++) {
    for (let j = 0; j < 10; j++) {
      const t = performance.now();
      await caisson("run", "--", "true")();
      b.push(performance.now() - t);
    }
    for (let j = 0; j < 10; j++) {
      const t = performance.now();
      await run(bwrap);
      p.push(performance.now() - t);
    }
  }
  console.log("b2b", mean(b).toFixed(2), mean(p).toFixed(2), (mean(b) / mean(p)).toFixed(2));
}
await daemon.stop();
rmSync(dir, { recursive: true });
