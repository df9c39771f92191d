// What a call costs, beside what bare Node costs.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, connect } from "@caisson/client";
import { BareSpawner } from "./support/bare-spawner.ts";
import { launcher, residentMb, root, startDaemon } from "./support/daemon.ts";
import { interleave, median } from "./support/measure.ts";
import { startPlain } from "./support/plain.ts";
import { Report } from "./support/report.ts";
import { run } from "./support/spawned.ts";

const quick = process.argv.includes("--quick");
const rounds = quick ? 100 : 1000;
const streamBytes = (quick ? 64 : 512) << 20;
const report = new Report();
execFileSync("sh", [join(root, "scripts/bootstrap.sh")], { stdio: ["ignore", "ignore", "inherit"] });
// A client that only calls would reach the bound on requests.
const daemon = await startDaemon({ CAISSON_LISTEN_REQUESTS_PER_SECOND: "100000" });
const plain = await startPlain(streamBytes);
const { client } = daemon;
const overTcp = await connectByTcp();

try {
  await emptyCalls();
  await smallExecs();
  await stream();
  await commandLine();
} finally {
  await overTcp.close();
  plain.close();
  await daemon.stop();
}
await subscribers();
await starting();
await importing();
report.print();

async function connectByTcp(): Promise<Client> {
  const status = execFileSync(launcher, ["daemon", "status", "--json"], {
    env: daemon.env,
    encoding: "utf8",
  });
  const url = (JSON.parse(status) as { listening: string[] }).listening[0];
  if (!url) throw new Error("the daemon does not listen on TCP");
  const { secret } = await client.keys.create("bench", { scopes: ["read", "write", "all"] });
  return connect({ url, key: secret });
}

/** Calls per second, some at once. */
async function perSecond(call: () => Promise<unknown>, count: number, atOnce: number): Promise<number> {
  let left = count;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) await call();
    }),
  );
  return count / ((performance.now() - began) / 1000);
}

async function emptyCalls(): Promise<void> {
  const subjects = {
    unix: async () => void (await client.system.health()),
    echo: () => plain.echo(),
    tcp: async () => void (await overTcp.system.health()),
    http: () => plain.http(),
  };
  const { unix: byUnix, echo: byEcho, tcp: byTcp, http: byHttp } = subjects;
  const times = {
    ...(await interleave({ unix: byUnix, echo: byEcho }, rounds, { warmup: rounds / 2 })),
    ...(await interleave({ tcp: byTcp, http: byHttp }, rounds, { warmup: rounds / 2 })),
  };
  const [unix, echo, tcp, http] = [times.unix, times.echo, times.tcp, times.http].map(median) as [
    number,
    number,
    number,
    number,
  ];
  report.add({
    what: "an empty call by the SDK on the Unix socket, p50",
    value: unix,
    unit: "ms",
    versus: "a raw one-byte echo",
    ratio: unix / echo,
    want: "<=",
    target: 3,
  });
  report.add({
    what: "an empty call by the SDK over TCP, p50",
    value: tcp,
    unit: "ms",
    versus: "a bare Node http server",
    ratio: tcp / http,
  });
  for (const [where, call] of [
    ["on the Unix socket", subjects.unix],
    ["over TCP", subjects.tcp],
  ] as const) {
    const ratios: number[] = [];
    const rates: number[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const bare = await perSecond(subjects.http, rounds, 16);
      rates.push(await perSecond(call, rounds, 16));
      ratios.push(rates.at(-1)! / bare);
    }
    report.add({
      what: `empty calls per second ${where}, 16 at once`,
      value: median(rates),
      unit: "per s",
      versus: "a bare Node http server",
      ratio: median(ratios),
    });
  }
}

async function smallExecs(): Promise<void> {
  const box = await client.create();
  const sameBox = overTcp.sandboxes.at(box.id);
  const count = rounds / 5;
  await using spawner = new BareSpawner();
  const times = await interleave(
    {
      unix: async () => void (await box.run(["/bin/true"])),
      tcp: async () => void (await sameBox.run(["/bin/true"])),
      bare: spawner.spawn,
    },
    count,
  );
  const rates: number[] = [];
  for (let turn = 0; turn < 3; turn++) {
    // In a process of its own, where nothing else has grown its memory.
    const script = join(import.meta.dirname, "support/bare-spawns.ts");
    const printed = execFileSync(process.execPath, [script, String(count), "8"], { encoding: "utf8" });
    rates.push((await perSecond(() => box.run(["/bin/true"]), count, 8)) / JSON.parse(printed).perSecond);
  }
  const versus = "child_process.spawn";
  const [unix, tcp, bare] = [times.unix, times.tcp, times.bare].map(median) as [number, number, number];
  report.add({
    what: "a small exec by the SDK on the Unix socket, p50",
    value: unix,
    unit: "ms",
    versus,
    ratio: unix / bare,
  });
  report.add({
    what: "a small exec by the SDK over TCP, p50",
    value: tcp,
    unit: "ms",
    versus,
    ratio: tcp / bare,
  });
  report.add({
    what: "small execs per second, 8 at once, beside bare spawns",
    value: median(rates),
    unit: "×",
    versus: "bare spawns, 8 at once",
    ratio: median(rates),
  });
  await box.delete();
}

/** Output that is kept, given once more: messages of 256 KiB from the daemon's files to the SDK. */
async function stream(): Promise<void> {
  const box = await client.create({ limits: { output: 2 * streamBytes } });
  const written = await box.exec(["sh", "-c", `head -c ${streamBytes} /dev/zero | tr '\\0' x`]);
  await written.wait();
  const again = async () => {
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const event of written.output()) {
      if (event.stream === "gap") throw new Error("a part of the output was not kept");
      hash.update(event.bytes);
      bytes += event.bytes.length;
    }
    if (bytes !== streamBytes) throw new Error(`${bytes} bytes came instead of ${streamBytes}`);
    return hash.digest("hex");
  };
  const hashes = new Set<string>();
  const times = await interleave(
    {
      ours: async () => void hashes.add(await again()),
      raw: async () => void hashes.add(await plain.flood()),
    },
    quick ? 2 : 3,
    { warmup: 1 },
  );
  const [ours, raw] = [median(times.ours), median(times.raw)];
  const note = hashes.size === 1 ? "contents right" : "CONTENTS WRONG";
  report.add({
    what: `a stream of ${streamBytes >> 20} MiB in messages of 256 KiB`,
    value: streamBytes / 2 ** 20 / (ours / 1000),
    unit: "MiB/s",
    versus: "a raw socket read",
    ratio: raw / ours,
    want: ">=",
    target: 0.4,
    note,
  });
  await box.delete();
}

async function commandLine(): Promise<void> {
  const times = await interleave(
    { ps: () => run([launcher, "ps", "--json"], { env: daemon.env }), true: () => run(["/bin/true"]) },
    quick ? 20 : 100,
  );
  const ps = median(times.ps);
  report.add({
    what: "./caisson ps --json, daemon up, p50",
    value: ps,
    unit: "ms",
    versus: "/bin/true",
    ratio: ps / median(times.true),
    want: "<=",
    target: 5,
  });
}

async function subscribers(): Promise<void> {
  const daemon = await startDaemon();
  const { client } = daemon;
  const count = 1000;
  const stop = new AbortController();
  let heard = 0;
  const all = Array.from({ length: count }, async () => {
    for await (const event of client.events.subscribe({ types: ["key."], signal: stop.signal })) {
      if (event.type === "key.revoked") heard++;
    }
  });
  const ended = Promise.allSettled(all);
  await client.keys.create("heard");
  await client.keys.revoke("heard");
  for (let tries = 0; tries < 600 && heard < count; tries++)
    await new Promise((resolve) => setTimeout(resolve, 50));
  const mb = residentMb(daemon.pid);
  report.add({
    what: `the daemon's memory with ${count} subscribers on the event stream`,
    value: mb,
    unit: "MB",
    want: "<=",
    target: 150,
    note: `${heard} heard of an event`,
  });
  stop.abort();
  await ended;
  await daemon.stop();
}

/** With the compile cache that every start after the first one finds. */
async function starting(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "caisson-bench-start-"));
  const env = {
    ...(process.env as Record<string, string>),
    CAISSON_HOME: home,
    CAISSON_LISTEN_TCP: "127.0.0.1:0",
  };
  const stop = async () => {
    const { stdout } = spawnSync(launcher, ["daemon", "stop"], { env, encoding: "utf8" });
    const pid = /pid (\d+)/.exec(stdout)?.[1];
    while (pid && existsSync(`/proc/${pid}`)) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const times = await interleave(
    {
      ready: async () => {
        const fresh = await startDaemon({}, home);
        await fresh.stop();
        return fresh.readyMs;
      },
      node: () => run([process.execPath, "-e", "0"]),
      run: async () => {
        const began = performance.now();
        await run([launcher, "run", "--", "true"], { env, cwd: root });
        const took = performance.now() - began;
        await stop();
        return took;
      },
    },
    quick ? 3 : 10,
    { warmup: 1 },
  );
  rmSync(home, { recursive: true, force: true });
  const [ready, bare, first] = [times.ready, times.node, times.run].map(median) as [number, number, number];
  const versus = "node -e 0";
  report.add({
    what: "the daemon's start until it answers",
    value: ready,
    unit: "ms",
    versus,
    ratio: ready / bare,
    want: "<=",
    target: 12,
  });
  report.add({
    what: "./caisson run -- true with no daemon running",
    value: first,
    unit: "ms",
    versus,
    ratio: first / bare,
    want: "<=",
    target: 15,
  });
}

async function importing(): Promise<void> {
  const load = `await import(${JSON.stringify(join(root, "packages/client/src/index.ts"))})`;
  const node = (script: string) => () => run([process.execPath, "--input-type=module", "-e", script]);
  const times = await interleave({ sdk: node(load), bare: node("0") }, quick ? 5 : 15, { warmup: 1 });
  const [sdk, bare] = [median(times.sdk), median(times.bare)];
  report.add({
    what: "importing the SDK, beyond a bare Node",
    value: sdk - bare,
    unit: "ms",
    want: "<=",
    target: 150,
    note: `${sdk.toFixed(0)} ms, bare ${bare.toFixed(0)} ms`,
  });
}
