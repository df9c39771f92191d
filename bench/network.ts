// What the way through the door costs, beside a direct connection, beside a bare relay and beside srt's proxy. The same
// program fetches from the same server each time; only where it runs and how it connects differs.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startNameServer } from "../packages/sandbox/src/egress/testing/name-server.ts";
import { root, startDaemon } from "./support/daemon.ts";
import { median } from "./support/measure.ts";
import { srt } from "./support/peers.ts";
import { progress, Report } from "./support/report.ts";

const quick = process.argv.includes("--quick");
const rounds = quick ? 2 : 7;
const bytes = 256 * 1024 * 1024;
const run = promisify(execFile);
const report = new Report();
const script = join(import.meta.dirname, "support/net-client.ts");
const dir = mkdtempSync(join(tmpdir(), "caisson-bench-net-"));
const server = await start("serve", bytes);
const relay = await start("relay", server.port);
const names = await startNameServer();
names.set("bench.test", ["127.0.0.1"]);
const daemon = await startDaemon({ CAISSON_NETWORK_DNS_SERVERS: names.address });
// The server stands on loopback, so that has to be named too.
const network = {
  allow: ["bench.test", "127.0.0.1"],
  limits: { connectionsPerSecond: 100_000 },
};
const box = await daemon.client.create({ workspace: { dir: root, mode: "bind" }, network });

interface Measured {
  p50: number;
  perSecond: number;
  ms: number;
}
type Way = (what: string, count: number, atOnce: number) => Promise<Measured>;

const argvOf = (way: string, host: string, port: number, ...more: unknown[]) => [
  process.execPath,
  "--disable-warning=ExperimentalWarning",
  script,
  way,
  host,
  String(port),
  ...more.map(String),
];

const inside =
  (way: string): Way =>
  async (...more) => {
    const { stdout, stderr, code } = await box.run(argvOf(way, "bench.test", server.port, ...more));
    if (code !== 0) throw new Error(stderr.text);
    return stdout.json() as Measured;
  };

const outside =
  (port: number): Way =>
  async (...more) => {
    const [file, ...args] = argvOf("plain", "127.0.0.1", port, ...more);
    return JSON.parse((await run(file!, args)).stdout);
  };

const ways: Record<string, Way> = {
  direct: outside(server.port),
  relay: outside(relay.port),
  connect: inside("connect"),
  transparent: inside("plain"),
};
const peer = srtWay();
if (typeof peer === "string") progress(`not compared with srt: ${peer}`);
else ways.srt = peer;

await fetches("keep-alive fetch", "keep", quick ? 1000 : 3000, quick ? 4000 : 10_000);
await fetches("new connection with one fetch", "new", quick ? 300 : 800, quick ? 600 : 2000);
await downloads();
await daemon.stop();
names.close();
for (const { child } of [server, relay]) child.stdin.end();
rmSync(dir, { recursive: true });
report.print();

/** Latency one after the other, and how many per second with sixteen at once. */
async function fetches(title: string, what: string, count: number, many: number): Promise<void> {
  const names = Object.keys(ways).filter((name) => name !== "relay");
  const alone = await measure(names, (way) => way(what, count, 1));
  const together = await measure(names, (way) => way(what, many, 16));
  const p50 = (name: string) => median(alone[name]!.map((measured) => measured.p50));
  const rate = (name: string) => median(together[name]!.map((measured) => measured.perSecond));
  for (const name of ["connect", "transparent"]) {
    report.add({
      what: `${title} by ${name}, p50`,
      value: p50(name),
      unit: "ms",
      versus: "a direct connection",
      ratio: p50(name) / p50("direct"),
    });
    report.add({
      what: `${title} by ${name}, added latency`,
      value: p50(name) - p50("direct"),
      unit: "ms",
      ...(what === "new" ? { want: "<=" as const, target: Number((3 * p50("direct") + 2).toFixed(3)) } : {}),
    });
    report.add({
      what: `${title} by ${name}, sixteen at once`,
      value: rate(name),
      unit: "per second",
      versus: "a direct connection",
      ratio: rate(name) / rate("direct"),
    });
    if (!ways.srt) continue;
    report.add({
      what: `${title} by ${name} beside srt, p50`,
      value: p50(name),
      unit: "ms",
      versus: "srt's proxy",
      ratio: p50(name) / p50("srt"),
      want: "<=",
      target: 1,
    });
    report.add({
      what: `${title} by ${name} beside srt, sixteen at once`,
      value: rate(name),
      unit: "per second",
      versus: "srt's proxy",
      ratio: rate(name) / rate("srt"),
      want: ">=",
      target: 1,
    });
  }
}

async function downloads(): Promise<void> {
  const found = await measure(Object.keys(ways), (way) => way("download", bytes, 1));
  const speed = (name: string) => bytes / 1e6 / (median(found[name]!.map(({ ms }) => ms)) / 1000);
  for (const name of ["connect", "transparent"])
    report.add({
      what: `256 MiB download by ${name}`,
      value: speed(name),
      unit: "MB/s",
      versus: "a bare Node relay",
      ratio: speed(name) / speed("relay"),
      want: ">=",
      target: 0.6,
    });
  report.add({ what: "256 MiB download over a bare Node relay", value: speed("relay"), unit: "MB/s" });
  if (ways.srt)
    report.add({
      what: "256 MiB download by connect beside srt",
      value: speed("connect"),
      unit: "MB/s",
      versus: "srt's proxy",
      ratio: speed("connect") / speed("srt"),
      want: ">=",
      target: 1,
    });
}

/** In turns, so that noise hits all alike; the first turn does not count. */
async function measure(
  names: string[],
  one: (way: Way) => Promise<Measured>,
): Promise<Record<string, Measured[]>> {
  const found: Record<string, Measured[]> = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      const measured = await (name === "srt" ? untilWhole(() => one(ways[name]!)) : one(ways[name]!));
      if (round >= 0) found[name]!.push(measured);
    }
  }
  return found;
}

/** The peer now and then loses the end of what it passes on: such a turn does not count, for or against it. */
async function untilWhole(one: () => Promise<Measured>): Promise<Measured> {
  for (let turns = 5; ; turns--) {
    try {
      return await one();
    } catch (error) {
      if (turns === 0) throw error;
      progress("srt did not pass everything on; once more");
    }
  }
}

/** The same program in srt, which is started for each turn and does its work before the program counts. */
function srtWay(): Way | string {
  const found = srt(["true"]);
  if ("missing" in found) return found.missing;
  const settings = join(dir, "srt.json");
  const filesystem = { denyRead: [], allowWrite: [dir], denyWrite: [] };
  writeFileSync(
    settings,
    JSON.stringify({ network: { allowedDomains: ["localhost"], deniedDomains: [] }, filesystem }),
  );
  return async (...more) => {
    const [file, ...args] = [
      found.argv[0]!,
      "--settings",
      settings,
      ...argvOf("connect", "localhost", server.port, ...more),
    ];
    const { stdout } = await run(file!, args, { cwd: dir, env: { ...process.env, ...found.env } });
    return JSON.parse(stdout.trim().split("\n").at(-1)!);
  };
}

async function start(role: string, argument: number) {
  const args = [join(import.meta.dirname, "support/net-server.ts"), role, String(argument)];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const [printed] = (await once(child.stdout, "data")) as [Buffer];
  return { child, port: Number(printed.toString()) };
}
